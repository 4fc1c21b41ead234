import Foundation
import HoldfastStore
import Testing

@testable import Holdfast

/// The exact requests of each shape of save, on every store.
///
/// A shape is declared below with what is stored before, the change, and the steps of the save. A store that doesn't declare a capability
/// causes other requests in some steps. ``SaveStep`` contains these differences, so a shape has the same steps on every store.
@Suite struct SaveShapeTests {
  enum Shape: String, CaseIterable, Sendable {
    case nothing, valueSetBack, linkTakenBack
    case insertion, insertions, insertionOfAnOrderedList, insertionWithAPermanentID, insertionOfAUniqueValue
    case attribute, attributeBesideAUniqueValue, uniqueValue
    case toOneWithoutInverse, owner, ownerNotRead
    case intoAnOrderedList, appendToANewEmptyList, betweenOrderedLists, moveWithinAnOrderedList, newOrderOfAnOrderedList
    case removalFromAnOrderedList, removalFromAListNotRead
    case manyToMany, toManyWithoutInverse
    case pair, replacedPair, outdatedPair
    case deletionNullifies, deletionWithoutDenyRule, deletionCascades, deletionOfAPartner, deletionInAnOrderedList
    case deletionOfAnUnreadObject, deletionOfANewObject, deletionOfANewFriend, deletionOfAFormerNewFriend
    case deletionWithListeners
    case upsert, upsertOfAReadObject, versionConflict, deletionConflict, deletionConflictWithAnOwner
    case lockedObject, lockedObjectAlone
    case externalInsertion, externalReplacement, attributeBesideAnExternalValue
    case derivedCount, attributeOfAnObjectWithACount
    case pinnedContext
  }

  @Test(arguments: Shape.allCases, TestStore.allCases)
  func aSaveSendsTheRequestsOfItsShape(_ shape: Shape, _ store: TestStore) throws {
    let scene = shape.scene, stage = try SaveStage(scene, store), capabilities = stage.capabilities
    if let needed = scene.needs, !capabilities[keyPath: needed] { return }
    try scene.change(stage)
    stage.clear()
    try stage.context.save()
    #expect(stage.requests == scene.steps.flatMap { $0.requests(to: capabilities) })
    #expect(stage.contents == scene.steps.compactMap { $0.contents(for: capabilities) })
    #expect(!stage.context.hasChanges)
  }
}

// MARK: - Nothing to save

extension SaveScene {
  fileprivate static var nothing: SaveScene {
    SaveScene(setUp: dogs, change: { _ = try $0.dog("Fido").age }, steps: [])
  }

  fileprivate static var valueSetBack: SaveScene {
    SaveScene(
      setUp: dogs,
      change: { stage in
        let fido = try stage.dog("Fido")
        fido.age = 4
        fido.age = 3
      }, steps: [])
  }

  /// The lists aren't in memory, so the store may have had the link. Its removal is sent.
  fileprivate static var linkTakenBack: SaveScene {
    SaveScene(
      setUp: dogs,
      change: { stage in
        let fido = try stage.dog("Fido"), rex = try stage.dog("Rex")
        fido.friends.insert(rex)
        fido.friends.remove(rex)
      }, steps: [.compares(["Dog"]), .saves(["Dog: new version", "Dog: new version", "Dog.friendOf: 0 added, 1 removed"])])
  }
}

// MARK: - Insertions

extension SaveScene {
  fileprivate static var insertion: SaveScene {
    SaveScene(change: { $0.context.person("Ann") }, steps: [.reservesKeys, .saves(["Person: 1 inserted"])])
  }

  fileprivate static var insertions: SaveScene {
    SaveScene(
      change: { stage in
        let context = stage.context, ann = context.person("Ann"), bob = context.person("Bob")
        for (number, owner) in [ann, ann, bob].enumerated() { context.dog("Dog \(number)", owner: owner) }
      }, steps: [.reservesKeys, .saves(["Dog: 3 inserted", "Person: 2 inserted"])])
  }

  fileprivate static var insertionOfAnOrderedList: SaveScene {
    SaveScene(
      model: .lists, change: { list("first", of: ["a", "b"], in: $0.context) },
      steps: [.reservesKeys, .saves(["Item: 2 inserted", "List: 1 inserted", "List.items: order of 2"])])
  }

  /// The keys were reserved before the save.
  fileprivate static var insertionWithAPermanentID: SaveScene {
    SaveScene(
      change: { try $0.context.obtainPermanentIDs(for: [$0.context.dog("Fido")]) }, steps: [.saves(["Dog: 1 inserted"])])
  }

  fileprivate static var insertionOfAUniqueValue: SaveScene {
    SaveScene(
      change: { $0.context.dog("Fido").chip = 1 }, steps: [.reservesKeys, .findsDuplicates(of: "Dog"), .saves(["Dog: 1 inserted"])])
  }
}

// MARK: - Attributes

extension SaveScene {
  fileprivate static var attribute: SaveScene {
    SaveScene(
      setUp: dogs, change: { try $0.dog("Fido").age = 4 }, steps: [.compares(["Dog"]), .saves(["Dog: updated age"])])
  }

  /// No unique value changes, so no store is searched for duplicates.
  fileprivate static var attributeBesideAUniqueValue: SaveScene {
    SaveScene(
      setUp: { $0.dog("Fido").chip = 1 }, change: { try $0.dog("Fido").age = 4 },
      steps: [.compares(["Dog"]), .saves(["Dog: updated age"])])
  }

  fileprivate static var uniqueValue: SaveScene {
    SaveScene(
      setUp: { $0.dog("Fido").chip = 1 }, change: { try $0.dog("Fido").chip = 2 },
      steps: [.compares(["Dog"]), .findsDuplicates(of: "Dog"), .saves(["Dog: updated chip"])])
  }
}

// MARK: - To-one relationships

extension SaveScene {
  fileprivate static var toOneWithoutInverse: SaveScene {
    SaveScene(
      model: .park,
      setUp: { context in
        context.make("Dog", ["name": .string("Fido")])
        context.make("Breed", ["name": .string("Beagle")])
      }, change: { try $0.object("Dog", "Fido").lead("breed", to: $0.object("Breed", "Beagle")) },
      steps: [.compares(["Dog"]), .saves(["Dog: updated breed"])])
  }

  /// Only the dog's row contains the link, so the owners aren't saved.
  fileprivate static var owner: SaveScene {
    SaveScene(
      setUp: owners,
      change: { stage in
        let fido = try stage.dog("Fido"), bob = try stage.person("Bob")
        _ = try stage.person("Ann")
        fido.owner = bob
      }, steps: [.compares(["Dog"]), .saves(["Dog: updated owner"])])
  }

  /// The former owner isn't saved, so it isn't read either.
  fileprivate static var ownerNotRead: SaveScene {
    SaveScene(
      setUp: owners, change: { try $0.dog("Fido").owner = $0.person("Bob") },
      steps: [.compares(["Dog"]), .saves(["Dog: updated owner"])])
  }
}

// MARK: - Ordered relationships

extension SaveScene {
  /// The item's order key follows that of the list's last item, so the list is read.
  fileprivate static var intoAnOrderedList: SaveScene {
    SaveScene(
      model: .lists, setUp: lists, change: { try $0.object("Item", "loose").lead("list", to: $0.object("List", "first")) },
      steps: [
        .readsLinks(of: "List.items"), .compares(["Item", "List"]),
        .saves(["Item: updated list", "List: new version", "List.items: order of 1"]),
      ])
  }

  /// The context has saved the list, so it knows that the list has no other items.
  fileprivate static var appendToANewEmptyList: SaveScene {
    SaveScene(
      model: .lists,
      change: { stage in
        let list = stage.keep(stage.context.make("List", ["name": .string("new")]))
        try stage.context.save()
        stage.context.make("Item", ["name": .string("a")]).lead("list", to: list)
      },
      steps: [.reservesKeys, .compares(["List"]), .saves(["Item: 1 inserted", "List: new version", "List.items: order of 1"])])
  }

  /// The list that gets the item is read. The one that loses it isn't: its other items keep their order keys.
  fileprivate static var betweenOrderedLists: SaveScene {
    SaveScene(
      model: .lists, setUp: lists,
      change: { stage in
        _ = try stage.object("List", "first")
        try stage.object("Item", "a").lead("list", to: stage.object("List", "second"))
      },
      steps: [
        .readsLinks(of: "List.items"), .compares(["Item", "List"]),
        .saves(["Item: updated list", "List: new version", "List: new version", "List.items: order of 1"]),
      ])
  }

  /// The change has read the list.
  fileprivate static var moveWithinAnOrderedList: SaveScene {
    SaveScene(
      model: .lists, setUp: lists, change: { try $0.object("List", "first").ordered(forKey: "items").move(from: 0, to: 2) },
      steps: [.compares(["List"]), .saves(["List: new version", "List.items: order of 1"])])
  }

  /// Only the last item, which becomes the first one, gets another order key.
  fileprivate static var newOrderOfAnOrderedList: SaveScene {
    SaveScene(
      model: .lists, setUp: lists,
      change: { try $0.object("List", "first").ordered(forKey: "items").move(fromOffsets: [2], toOffset: 0) },
      steps: [.compares(["List"]), .saves(["List: new version", "List.items: order of 1"])])
  }

  /// The other items keep their order keys. The change has read the list.
  fileprivate static var removalFromAnOrderedList: SaveScene {
    SaveScene(
      model: .lists, setUp: lists, change: { try $0.object("List", "first").ordered(forKey: "items").remove(at: 0) },
      steps: [.compares(["Item", "List"]), .saves(["Item: updated list", "List: new version"])])
  }

  /// The other items keep their order keys, so the list isn't read.
  fileprivate static var removalFromAListNotRead: SaveScene {
    SaveScene(
      model: .lists, setUp: lists,
      change: { stage in
        _ = try stage.object("List", "first")
        try stage.object("Item", "a").lead("list", to: nil)
      },
      steps: [.compares(["Item", "List"]), .saves(["Item: updated list", "List: new version"])])
  }
}

// MARK: - Links

extension SaveScene {
  /// The versions of both ends are compared and incremented. Links are named from the side of `friendOf`, first in the order of names.
  fileprivate static var manyToMany: SaveScene {
    SaveScene(
      setUp: { context in
        context.dog("Fido").friends.insert(context.dog("Rex"))
        context.dog("Max")
      },
      change: { stage in
        let fido = try stage.dog("Fido"), rex = try stage.dog("Rex"), max = try stage.dog("Max")
        fido.friends.remove(rex)
        fido.friends.insert(max)
      },
      steps: [
        .compares(["Dog"]),
        .saves(["Dog: new version", "Dog: new version", "Dog: new version", "Dog.friendOf: 1 added, 1 removed"]),
      ])
  }

  /// The destinations don't know their owner, so only the owner's version changes. Those that are added must exist.
  fileprivate static var toManyWithoutInverse: SaveScene {
    SaveScene(
      model: .park,
      setUp: { context in
        context.make("Dog", ["name": .string("Fido")]).many("toys").insert(context.make("Toy"))
        context.make("Toy")
      },
      change: { stage in
        let fido = try stage.object("Dog", "Fido"), toys = try stage.context.all("Toy"), known = Set(fido.many("toys"))
        for toy in toys { if known.contains(toy) { fido.many("toys").remove(toy) } else { fido.many("toys").insert(toy) } }
      }, steps: [.readsRows(of: "Toy"), .compares(["Dog"]), .saves(["Dog: new version", "Dog.toys: 1 added, 1 removed"])])
  }
}

// MARK: - One-to-one relationships

extension SaveScene {
  /// Both rows contain the link.
  fileprivate static var pair: SaveScene {
    SaveScene(
      setUp: { context in
        context.dog("Fido")
        collar("red", in: context)
      }, change: { try $0.dog("Fido").collar = $0.collar("red") },
      steps: [.compares(["Collar", "Dog"]), .saves(["Collar: updated dog", "Dog: updated collar"])])
  }

  /// Fido gets Rex's collar instead of his own, so all four rows change.
  fileprivate static var replacedPair: SaveScene {
    SaveScene(
      setUp: { context in
        context.dog("Fido").collar = collar("red", in: context)
        context.dog("Rex").collar = collar("blue", in: context)
      },
      change: { stage in
        let fido = try stage.dog("Fido"), blue = try stage.collar("blue")
        _ = (try stage.dog("Rex"), try stage.collar("red"))
        fido.collar = blue
      },
      steps: [
        .compares(["Collar", "Dog"]),
        .saves(["Collar: updated dog", "Collar: updated dog", "Dog: updated collar", "Dog: updated collar"]),
      ])
  }

  /// The collar was read before another context gave it to Fido, so taking it off doesn't change the collar here. Its version is compared,
  /// and differs. Its row is read again to resolve the conflict, and then changes, too.
  fileprivate static var outdatedPair: SaveScene {
    SaveScene(
      setUp: { context in
        context.dog("Fido")
        collar("red", in: context)
      },
      change: { stage in
        _ = try stage.collar("red")
        let theirs = try stage.other()
        let theirFido = try #require(try theirs.one(Dog.self) { $0.name == "Fido" })
        theirFido.collar = try theirs.one(Collar.self) { $0.color == "red" }
        try theirs.save()
        stage.context.mergePolicy = .mergeByPropertyObjectTrump
        try stage.dog("Fido").collar = nil
      },
      steps: [
        .compares(["Collar", "Dog"]), .isRefused(by: \.versions, ["Collar: 1 locked", "Dog: updated collar"]),
        .readsRows(of: "Collar"),
        .compares(["Collar", "Dog"]), .saves(["Collar: updated dog", "Dog: updated collar"]),
      ])
  }
}

// MARK: - Deletions

extension SaveScene {
  /// The deny rule of a person's licences is checked: are there any? The store clears the owners of dogs that aren't in memory.
  fileprivate static var deletionNullifies: SaveScene {
    SaveScene(
      setUp: owners,
      change: { stage in
        _ = try stage.dog("Fido")
        stage.context.delete(try stage.person("Ann"))
      },
      steps: [
        .readsLinks(of: "Person.licences"), .compares(["Dog", "Person"]), .saves(["Dog: updated owner", "Person: 1 deleted"]),
      ])
  }

  fileprivate static var deletionWithoutDenyRule: SaveScene {
    SaveScene(
      model: .park,
      setUp: { context in
        let ann = context.make("Person", ["name": .string("Ann")])
        context.make("Dog", ["name": .string("Fido")]).lead("owner", to: ann)
      }, change: { $0.context.delete(try $0.object("Person", "Ann")) },
      steps: [.compares(["Person"]), .saves(["Person: 1 deleted"])])
  }

  /// The vaccinations are read, because they would be deleted, too. The collar is read: it is deleted if its version is the one that was
  /// read.
  fileprivate static var deletionCascades: SaveScene {
    SaveScene(
      setUp: { $0.dog("Fido").collar = collar("red", in: $0) }, change: { $0.context.delete(try $0.dog("Fido")) },
      steps: [
        .readsLinks(of: "Dog.vaccinations"), .readsRows(of: "Collar"), .compares(["Collar", "Dog"]),
        .saves(["Collar: 1 deleted", "Dog: 1 deleted"]),
      ])
  }

  /// The store clears the collar of the dog, which isn't in memory.
  fileprivate static var deletionOfAPartner: SaveScene {
    SaveScene(
      setUp: { $0.dog("Fido").collar = collar("red", in: $0) }, change: { $0.context.delete(try $0.collar("red")) },
      steps: [.compares(["Collar"]), .saves(["Collar: 1 deleted"])])
  }

  /// The other items keep their order keys, so the list isn't saved.
  fileprivate static var deletionInAnOrderedList: SaveScene {
    SaveScene(
      model: .lists, setUp: lists, change: { $0.context.delete(try $0.object("Item", "b")) },
      steps: [.compares(["Item"]), .saves(["Item: 1 deleted"])])
  }

  /// The version of the deleted row is compared, so the newest one is read. A row from the coordinator's cache may be outdated, and the save
  /// would be a conflict.
  fileprivate static var deletionOfAnUnreadObject: SaveScene {
    SaveScene(
      model: .lists, setUp: lists,
      change: { stage in
        let id = try #require(try stage.other().all("Item").first).objectID
        stage.context.delete(try stage.context.object(with: id))
      }, steps: [.readsRows(of: "Item"), .compares(["Item"]), .saves(["Item: 1 deleted"])])
  }

  fileprivate static var deletionOfANewObject: SaveScene {
    SaveScene(change: { $0.context.delete($0.context.dog("Fido")) }, steps: [])
  }

  /// The friend was never saved, so Fido doesn't change.
  fileprivate static var deletionOfANewFriend: SaveScene { deletionOfAFriend(isRemovedBefore: false) }

  /// The list isn't in memory, but the store can't have the link.
  fileprivate static var deletionOfAFormerNewFriend: SaveScene { deletionOfAFriend(isRemovedBefore: true) }

  private static func deletionOfAFriend(isRemovedBefore: Bool) -> SaveScene {
    SaveScene(
      setUp: dogs,
      change: { stage in
        let fido = try stage.dog("Fido"), new = stage.context.dog("New")
        fido.friends.insert(new)
        if isRemovedBefore { fido.friends.remove(new) }
        stage.context.delete(new)
      }, steps: [])
  }

  /// The notification names the items that lose their list, so they are read.
  fileprivate static var deletionWithListeners: SaveScene {
    SaveScene(
      model: .lists, setUp: lists,
      change: { stage in
        stage.keep(stage.context.persistentStoreCoordinator.savedChanges())
        stage.context.delete(try stage.object("List", "first"))
      }, steps: [.compares(["List"]), .readsLinks(of: "List.items"), .saves(["List: 1 deleted"])])
  }
}

// MARK: - Conflicts

extension SaveScene {
  /// The stored dog is read, and the new object becomes an update of it. Its unique value is the stored one, so no duplicates are searched for.
  fileprivate static var upsert: SaveScene {
    SaveScene(
      setUp: { $0.dog("Old", age: 9).chip = 7 },
      change: { stage in
        stage.context.mergePolicy = .mergeByPropertyObjectTrump
        stage.context.dog("New").chip = 7
      },
      steps: [
        .reservesKeys, .findsDuplicates(of: "Dog"), .isRefused(by: \.uniqueness, ["Dog: 1 inserted"]),
        .readsRows(of: "Dog"),
        .compares(["Dog"]), .saves(["Dog: updated name"]),
      ])
  }

  /// The stored dog is in the context. Its row is read again, because the save hasn't compared it.
  fileprivate static var upsertOfAReadObject: SaveScene {
    SaveScene(
      setUp: { $0.dog("Old", age: 9).chip = 7 },
      change: { stage in
        stage.context.mergePolicy = .mergeByPropertyObjectTrump
        _ = try stage.dog("Old")
        stage.context.dog("New").chip = 7
      },
      steps: [
        .reservesKeys, .findsDuplicates(of: "Dog"), .isRefused(by: \.uniqueness, ["Dog: 1 inserted"]),
        .readsRows(of: "Dog"),
        .compares(["Dog"]), .saves(["Dog: updated name"]),
      ])
  }

  /// The stored row is read to merge it.
  fileprivate static var versionConflict: SaveScene {
    SaveScene(
      setUp: dogs,
      change: { stage in
        let fido = try stage.dog("Fido"), theirs = try stage.other()
        try theirs.existingDog(fido.objectID).notes = "theirs"
        try theirs.save()
        stage.context.mergePolicy = .mergeByPropertyObjectTrump
        fido.name = "Ours"
      },
      steps: [
        .compares(["Dog"]), .isRefused(by: \.versions, ["Dog: updated name"]),
        .readsRows(of: "Dog"),
        .compares(["Dog"]), .saves(["Dog: updated name"]),
      ])
  }

  /// The row is looked for twice: to find out that it was deleted, and under the save lock, because another context may have inserted it
  /// again meanwhile.
  fileprivate static var deletionConflict: SaveScene {
    SaveScene(
      setUp: dogs, change: deletedByOthers,
      steps: [
        .compares(["Dog"]), .isRefused(by: \.versions, ["Dog: updated name"]),
        .readsRows(of: "Dog"),
        .readsRows(of: "Dog"), .saves(["Dog: 1 inserted"]),
      ])
  }

  /// The owner may have been deleted, too, so it is read before the dog references it again.
  fileprivate static var deletionConflictWithAnOwner: SaveScene {
    SaveScene(
      setUp: owners, change: deletedByOthers,
      steps: [
        .compares(["Dog"]), .isRefused(by: \.versions, ["Dog: updated name"]),
        .readsRows(of: "Dog"), .readsRows(of: "Person"),
        .readsRows(of: "Dog"), .saves(["Dog: 1 inserted"]),
      ])
  }

  private static func deletedByOthers(_ stage: SaveStage) throws {
    let fido = try stage.dog("Fido"), theirs = try stage.other()
    theirs.delete(try theirs.existingDog(fido.objectID))
    try theirs.save()
    stage.context.mergePolicy = .mergeByPropertyObjectTrump
    fido.name = "Ours"
  }

  fileprivate static var lockedObject: SaveScene {
    SaveScene(
      setUp: dogs,
      change: { stage in
        try stage.context.detectConflicts(for: stage.dog("Fido"))
        stage.context.person("Ann")
      }, steps: [.reservesKeys, .compares(["Dog"]), .saves(["Dog: 1 locked", "Person: 1 inserted"])])
  }

  /// Nothing is written, so the framework compares the version: the store may be read-only.
  fileprivate static var lockedObjectAlone: SaveScene {
    SaveScene(
      setUp: dogs,
      change: { stage in
        try stage.context.detectConflicts(for: stage.dog("Fido"))
        let rex = try stage.dog("Rex")
        rex.age = 6
        rex.age = 5
      }, steps: [.readsRows(of: "Dog")])
  }
}

// MARK: - External and derived values

extension SaveScene {
  fileprivate static var externalInsertion: SaveScene {
    SaveScene(model: .cats, change: { tom($0.context) }, steps: [.reservesKeys, .saves(["Cat: 1 inserted"])])
  }

  fileprivate static var externalReplacement: SaveScene {
    SaveScene(
      model: .cats, setUp: tom, change: { try $0.object("Cat", "Tom")["photo"] = photo(2) },
      steps: [.compares(["Cat"]), .saves(["Cat: updated photo"])])
  }

  /// The file of the photo isn't read.
  fileprivate static var attributeBesideAnExternalValue: SaveScene {
    SaveScene(
      model: .cats, setUp: tom, change: { try $0.object("Cat", "Tom")["name"] = .string("Max") },
      steps: [.compares(["Cat"]), .saves(["Cat: updated name"])])
  }

  /// The dog's stored row is read, because the save publishes the new count. The dog keeps its version.
  fileprivate static var derivedCount: SaveScene {
    SaveScene(
      model: .walks, setUp: { $0.make("Dog", ["name": .string("Fido")]) },
      change: { $0.context.make("Walk", dog: try $0.object("Dog", "Fido")) },
      steps: [.reservesKeys, .readsRows(of: "Dog"), .saves(["Dog: derived walkCount", "Walk: 1 inserted"])])
  }

  /// The saved row contains the count, which another save may have changed without a new version. So the stored row is read.
  fileprivate static var attributeOfAnObjectWithACount: SaveScene {
    SaveScene(
      model: .walks, setUp: { $0.make("Dog", ["name": .string("Fido")]) },
      change: { try $0.object("Dog", "Fido")["name"] = .string("Max") },
      steps: [.readsRows(of: "Dog"), .compares(["Dog"]), .saves(["Dog: updated loudName, name"])])
  }
}

// MARK: - Generations

extension SaveScene {
  /// The save ends the context's generation. The next request begins another one, not the save.
  fileprivate static var pinnedContext: SaveScene {
    SaveScene(
      setUp: dogs,
      change: { stage in
        try stage.context.setQueryGeneration(from: .current)
        let fido = try stage.dog("Fido"), theirs = try stage.other()
        try #require(try theirs.one(Dog.self) { $0.name == "Rex" }).age = 6
        try theirs.save()
        fido.age = 4
      }, steps: [.compares(["Dog"]), .saves(["Dog: updated age"])], needs: \StoreCapabilities.snapshots)
  }
}

// MARK: - What is stored before

extension SaveScene {
  /// Fido and Rex, without chips: a store without uniqueness would be searched for duplicates.
  fileprivate static func dogs(_ context: ManagedObjectContext) {
    context.dog("Fido", age: 3)
    context.dog("Rex", age: 5)
  }

  /// Ann with Fido and Rex, and Bob without dogs.
  fileprivate static func owners(_ context: ManagedObjectContext) {
    let ann = context.person("Ann")
    context.person("Bob")
    context.dog("Fido", age: 3, owner: ann)
    context.dog("Rex", age: 5, owner: ann)
  }

  /// Two lists, and an item without a list.
  fileprivate static func lists(_ context: ManagedObjectContext) {
    list("first", of: ["a", "b", "c"], in: context)
    list("second", of: ["d"], in: context)
    context.make("Item", ["name": .string("loose")])
  }

  fileprivate static func list(_ name: String, of items: [String], in context: ManagedObjectContext) {
    let list = context.make("List", ["name": .string(name)])
    for item in items { context.make("Item", ["name": .string(item)]).lead("list", to: list) }
  }

  @discardableResult fileprivate static func collar(_ color: String, in context: ManagedObjectContext) -> Collar {
    let collar = context.insert(Collar.self)
    collar.color = color
    return collar
  }

  fileprivate static func tom(_ context: ManagedObjectContext) {
    context.make("Cat", ["name": .string("Tom"), "photo": photo(1)])
  }

  /// A photo that is large enough for an external file.
  fileprivate static func photo(_ byte: UInt8) -> StoreValue { .data(Data(repeating: byte, count: 300_000)) }
}

extension SaveShapeTests.Shape {
  fileprivate var scene: SaveScene {
    switch self {
    case .nothing: .nothing
    case .valueSetBack: .valueSetBack
    case .linkTakenBack: .linkTakenBack
    case .insertion: .insertion
    case .insertions: .insertions
    case .insertionOfAnOrderedList: .insertionOfAnOrderedList
    case .insertionWithAPermanentID: .insertionWithAPermanentID
    case .insertionOfAUniqueValue: .insertionOfAUniqueValue
    case .attribute: .attribute
    case .attributeBesideAUniqueValue: .attributeBesideAUniqueValue
    case .uniqueValue: .uniqueValue
    case .toOneWithoutInverse: .toOneWithoutInverse
    case .owner: .owner
    case .ownerNotRead: .ownerNotRead
    case .intoAnOrderedList: .intoAnOrderedList
    case .appendToANewEmptyList: .appendToANewEmptyList
    case .betweenOrderedLists: .betweenOrderedLists
    case .moveWithinAnOrderedList: .moveWithinAnOrderedList
    case .newOrderOfAnOrderedList: .newOrderOfAnOrderedList
    case .removalFromAnOrderedList: .removalFromAnOrderedList
    case .removalFromAListNotRead: .removalFromAListNotRead
    case .manyToMany: .manyToMany
    case .toManyWithoutInverse: .toManyWithoutInverse
    case .pair: .pair
    case .replacedPair: .replacedPair
    case .outdatedPair: .outdatedPair
    case .deletionNullifies: .deletionNullifies
    case .deletionWithoutDenyRule: .deletionWithoutDenyRule
    case .deletionCascades: .deletionCascades
    case .deletionOfAPartner: .deletionOfAPartner
    case .deletionInAnOrderedList: .deletionInAnOrderedList
    case .deletionOfAnUnreadObject: .deletionOfAnUnreadObject
    case .deletionOfANewObject: .deletionOfANewObject
    case .deletionOfANewFriend: .deletionOfANewFriend
    case .deletionOfAFormerNewFriend: .deletionOfAFormerNewFriend
    case .deletionWithListeners: .deletionWithListeners
    case .upsert: .upsert
    case .upsertOfAReadObject: .upsertOfAReadObject
    case .versionConflict: .versionConflict
    case .deletionConflict: .deletionConflict
    case .deletionConflictWithAnOwner: .deletionConflictWithAnOwner
    case .lockedObject: .lockedObject
    case .lockedObjectAlone: .lockedObjectAlone
    case .externalInsertion: .externalInsertion
    case .externalReplacement: .externalReplacement
    case .attributeBesideAnExternalValue: .attributeBesideAnExternalValue
    case .derivedCount: .derivedCount
    case .attributeOfAnObjectWithACount: .attributeOfAnObjectWithACount
    case .pinnedContext: .pinnedContext
    }
  }
}
