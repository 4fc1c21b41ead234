// Generated from the model. Don't change it: it is overwritten.

import Foundation
import Holdfast

nonisolated extension Base {
  /// A point in time.
  var created: Date {
    get { self[property: Slots.created] }
    set { self[property: Slots.created] = newValue }
  }

  /// The values of an object that can be sent to other threads, encoded and applied again.
  typealias Snapshot = ManagedObjectSnapshot<Base>

  /// Where an object keeps its properties.
  enum Slots {
    static var created: SlotIndex { SlotIndex(ManagedObject.SlotCounts.slots) }
  }

  /// The numbers of an object's properties, for subclasses.
  enum SlotCounts {
    static var slots: Int { Slots.created.rawValue + slotCount(of: Date.self) }
    static var toMany: Int { ManagedObject.SlotCounts.toMany }
    static var transients: Int { ManagedObject.SlotCounts.transients }
    static var transientLinks: Int { ManagedObject.SlotCounts.transientLinks }
  }

  /// What the model has of the class.
  enum Properties {
    /// The name of the entity.
    static var entityName: String { "Base" }
    /// The entity.
    static var declaration: EntityDeclaration {
      var declaration = EntityDeclaration(Base.self)
      declaration.properties.append(.property("created", \Base.created))
      declaration.isAbstract = true
      declaration.versionHashModifier = "m"
      return declaration
    }
  }
}
