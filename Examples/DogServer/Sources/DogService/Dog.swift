import Foundation
import Holdfast

/// A dog in the register.
@Entity final class Dog: ManagedObject {
  /// The name in addresses: `/dogs/6F9619FF-8B86-4011-B42D-00C04FC964F4`.
  @Attribute(.unique) var tag = UUID()
  @Attribute(.length(1...80)) var name: String
  @Attribute(.unique, .pattern("[0-9]{15}")) var chip: String?
  @Attribute(.range(0...40)) var age = 0
  /// The number of updates. A client that updates a dog says which revision it has read.
  var revision = 0
  #Index<Dog>([\.name])
}
