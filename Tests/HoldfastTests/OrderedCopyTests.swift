import HoldfastStore
import Testing

@testable import Holdfast

/// An item "a" deletes the second item of its list when it gets its row.
private final class DeletingItem: ManagedObject {
  override class var entityName: String { "Item" }

  override func awakeFromFetch() {
    do {
      let list: ManagedObject? = toOne(0)
      guard let list, try value(forKey: "name").storeValue == .string("a") else { return }
      managedObjectContext.delete(try list.ordered(forKey: "items")[1])
    } catch { Issue.record(error) }
  }
}

/// A list that gets another item when it gets its row.
private final class FillingList: ManagedObject {
  override class var entityName: String { "List" }

  override func awakeFromFetch() {
    do { try ordered(forKey: "items").append(Lists.newItem("own", managedObjectContext)) } catch { Issue.record(error) }
  }
}

/// Arrays of the objects of an ordered relationship.
@Suite struct OrderedCopyTests {
  enum Copy: CaseIterable, Sendable { case array, appended, sorted, removed }

  /// The rows of items determine their entities, so that a list gets its objects with their rows.
  private static func model() throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription("List", relationships: [.toMany("items", to: "Item", inverse: "list", isOrdered: true)]),
      EntityDescription(
        "Item", attributes: [AttributeDescription("name", .string)], relationships: [.toOne("list", to: "List", inverse: "items")]),
      EntityDescription("SpecialItem", superentity: "Item"),
    ])
  }

  /// The bug: the process ended, because the array got fewer objects than the list had before.
  @Test(arguments: TestStore.allCases, Copy.allCases)
  func anObjectThatIsDeletedWhileAListIsCopiedToAnArrayIsNotInTheArray(_ store: TestStore, _ copy: Copy) throws {
    let place = try store.makePlace(model: Self.model(), classes: [DeletingItem.self]), setup = try place.context()
    let original = try setup.insert(entityNamed: "List")
    for name in ["a", "b", "c"] { try original.ordered(forKey: "items").append(Lists.newItem(name, setup)) }
    try setup.save()
    let context = try place.context(), list = try context.existingObject(with: original.objectID)
    let items = try list.ordered(forKey: "items")
    // From here on, the list is the object's own one. None of its objects has been read.
    items.move(from: 2, to: 1)
    var copied: [ManagedObject] = []
    switch copy {
    case .array: copied = Array(items)
    case .appended: copied += items
    case .sorted: copied = items.sorted { $0.objectID.key < $1.objectID.key }
    case .removed: items.removeAll()
    }
    let names = copy == .removed ? [] : ["a", "b"]
    #expect(try Lists.names(of: copied) == names && Lists.names(of: items) == names && items.count == names.count)
    try context.save()
    let plain = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: [])
    #expect(try Lists.names(of: plain.existingObject(with: original.objectID).ordered(forKey: "items")) == names)
    #expect(try plain.count(for: FetchRequest<ManagedObject>(entityName: "Item")) == 2)
  }
  /// The bug: the item was missing in the list until another context read it.
  @Test(arguments: TestStore.allCases) func anItemThatAListGetsWhileItIsAwakenedStaysInTheList(_ store: TestStore) throws {
    let place = try store.makePlace(model: Self.model(), classes: [FillingList.self]), setup = try place.context()
    let original = try setup.insert(entityNamed: "List")
    try original.ordered(forKey: "items").append(Lists.newItem("a", setup))
    try setup.save()
    let context = try place.context(), list = try context.object(with: original.objectID)
    let items = try list.ordered(forKey: "items")
    #expect(list.isFault)
    try items.append(Lists.newItem("b", context))
    #expect(try Lists.names(of: items) == ["a", "own", "b"] && items.count == 3)
    try context.save()
    let plain = try ManagedObjectContext(coordinator: context.persistentStoreCoordinator, classes: [])
    #expect(try Lists.names(of: plain.existingObject(with: original.objectID).ordered(forKey: "items")) == ["a", "own", "b"])
  }
}
