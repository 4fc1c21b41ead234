#if Macros
  import Holdfast
  import HoldfastMemoryStore
  import TestSupport
  import Testing

  /// The examples of the macros do what their article says.
  @Suite struct MacroTests {
    @MainActor @Test func theFirstProgramKeepsAWalk() throws {
      let folder = TemporaryFolder()
      let (container, fido) = try MacroKennel.walk(folder.file("dogs.sqlite"))
      #expect(fido.walks.first?.minutes == 40)
      #expect(container.managedObjectModel.entities.map(\.name) == ["Dog", "Walk"])
    }

    @Test func theClassesOfTheArticleMakeModels() throws {
      let routes = try ManagedObjectModel.declared(by: [MacroRoutes.Route.self])
      #expect(routes.entity(named: "Stop")?.attributes.map(\.name) == ["created", "kind", "place.city", "place.latitude", "tags", "title"])
      let garden = try ManagedObjectModel.declared(by: [MacroGarden.Tree.self])
      #expect(garden.entities.map(\.name) == ["Place2D", "Tree"])
      let options = try ManagedObjectModel.declared(by: [MacroOptions.Dog.self])
      #expect(options.entity(named: "Dog")?.indexes.map(\.name) == ["name", "home.city_name"])
    }

    @Test func savesComputeTheDerivedAttributesOfTheArticle() throws {
      let container = try PersistentContainer(for: MacroHikes.Hiker.self, store: .memory()), context = container.newContext()
      let ann = MacroHikes.Hiker(context: context, name: "Änn")
      for minutes in [30, 40] { context.insert(MacroHikes.Hike.self) { ($0.minutes, $0.hiker) = (minutes, ann) } }
      try context.save()
      #expect(ann.searchName == "ann" && ann.hikeCount == 2 && ann.minutes == 70 && ann.hikes.first?.hikerName == "Änn")
    }

    @Test func aTreeIsEncodedAndPlantedAgain() throws {
      let context = try ManagedObjectContext(
        coordinator: PersistentStoreCoordinator(model: .declared(by: [MacroGarden.Tree.self]), store: .memory()),
        classes: [MacroGarden.Place2D.self, MacroGarden.Tree.self])
      let oak = MacroGarden.tree(context)
      try context.save()
      let again = try MacroGarden.planted(oak, context)
      #expect(again.species == "oak" && again.x == 1.5)
    }
  }
#endif
