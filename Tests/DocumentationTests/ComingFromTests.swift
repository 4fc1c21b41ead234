#if Macros
  import Foundation
  import Holdfast
  import HoldfastMemoryStore
  import HoldfastModelFile
  import HoldfastSQLiteStore
  import TestSupport
  import Testing

  /// The examples of *Coming from Core Data*, *SwiftData* and *GRDB* do what their articles say.
  @Suite struct ComingFromTests {
    @Test func aStoreIsOpenedWithTheModelOfItsFileAndItsDogsAreRenamed() async throws {
      let folder = TemporaryFolder()
      let declared = try ManagedObjectModel.declared(by: [FromGRDB.Dog.self])
      try ModelBundle.write(["Kennel": ModelDocument(declared)], currentVersion: "Kennel", to: folder.file("Kennel.xcdatamodeld"))
      do {
        let container = try PersistentContainer(for: FromGRDB.Dog.self, store: .sqlite(at: folder.file("Kennel.sqlite")))
        try container.withContext { context in
          for name in ["", "Fido"] { context.insert(FromGRDB.Dog.self) { $0.name = name } }
          try context.save()
        }
        #expect(try await FromCoreData().renameAll(container) == 1)
      }
      let container = try FromCoreData().openKennel(folder.path)
      #expect(try container.newContext().fetch(FromGRDB.Dog.self, sortedBy: \.name).map(\.name) == ["Fido", "Unnamed"])
      #expect(try FromGRDB().firstDogs(container).map(\.name) == ["Fido", "Unnamed"])
    }

    @Test func tripsAreFoundByTheirPlaces() throws {
      let context = try PersistentContainer(for: FromSwiftData.Trip.self, store: .memory()).newContext()
      for (name, latitude) in [("Alps", 46.0), ("Lofoten", 68.0)] {
        let trip = FromSwiftData.Trip(context: context, name: name, begin: .now)
        trip.stops.append(context.insert(FromSwiftData.Stop.self) { $0.place = FromSwiftData.Place(city: "", latitude: latitude) })
      }
      try context.save()
      #expect(try FromSwiftData().tripsToCities(context, north: 60) == ["Lofoten"])
    }

    @Test func minutesMoveFromOneWalkToAnother() throws {
      let container = try PersistentContainer(for: FromGRDB.Walk.self, store: .memory())
      let ids = try container.withContext { context in
        let walks = [40, 10].map { minutes in context.insert(FromGRDB.Walk.self) { $0.minutes = minutes } }
        try context.save()
        return walks.map(\.objectID)
      }
      try FromGRDB().move(15, from: ids[0], to: ids[1], in: container)
      #expect(try container.newContext().fetch(FromGRDB.Walk.self, sortedBy: \.minutes).map(\.minutes) == [25, 25])
    }
  }
#endif
