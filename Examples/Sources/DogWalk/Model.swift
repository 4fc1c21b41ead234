import Foundation
import Holdfast

/// A dog. The store keeps the order of its walks, and deleting the dog deletes them.
@Entity final class Dog: ManagedObject {
  @Attribute(.unique) var name = ""
  @Relationship(deleteRule: .cascade, inverse: \Walk.dog) var walks: OrderedToMany<Walk>
}

/// A walk, which must have a dog.
@Entity final class Walk: ManagedObject {
  var date: Date
  @Relationship(.required) var dog: Dog?
}
