// Generated from the model. Don't change it: it is overwritten.

import Holdfast

nonisolated extension Owner {
  /// Objects of Item, in order. The inverse is `Item.owner`.
  var items: OrderedToMany<Item> {
    get { self[property: Slots.items] }
    set { self[property: Slots.items] = newValue }
  }

  /// Adds an object to `items`.
  func addToItems(_ object: Item) { self.items.append(object) }

  /// Adds objects to `items`.
  func addToItems(_ objects: some Sequence<Item>) { self.items.append(contentsOf: objects) }

  /// Removes an object from `items`.
  func removeFromItems(_ object: Item) { self.items.remove(object) }

  /// Removes objects from `items`.
  func removeFromItems(_ objects: some Sequence<Item>) { self.items.subtract(objects) }

  /// The values of an object that can be sent to other threads, encoded and applied again.
  typealias Snapshot = ManagedObjectSnapshot<Owner>

  /// Inserts a new object.
  convenience init(context managedObjectContext: ManagedObjectContext) {
    self.init(insertedInto: managedObjectContext)
    finishInsertion()
  }

  /// Where an object keeps its properties.
  enum Slots {
    static var items: ToManyIndex { ToManyIndex(ManagedObject.SlotCounts.toMany + 0) }
  }

  /// The numbers of an object's properties, for subclasses.
  enum SlotCounts {
    static var slots: Int { ManagedObject.SlotCounts.slots }
    static var toMany: Int { ManagedObject.SlotCounts.toMany + 1 }
    static var transients: Int { ManagedObject.SlotCounts.transients }
    static var transientLinks: Int { ManagedObject.SlotCounts.transientLinks }
  }

  /// What the model has of the class.
  enum Properties {
    /// The name of the entity.
    static var entityName: String { "Owner" }
    /// The entity.
    static var declaration: EntityDeclaration {
      var declaration = EntityDeclaration(Owner.self)
      declaration.properties.append(
        .property(
          "items",
          \Owner.items,
          .required,
          .setting(\.minCount, 1),
          .setting(\.maxCount, 9),
          .renamed(from: "things"),
          .versionHashModifier("r"),
          .userInfo(["a": "", "k": "v"]),
          deleteRule: .deny,
          inverse: \Item.owner
        ))
      declaration.configurations = ["Cloud"]
      return declaration
    }
  }
}
