package import Foundation
import Hummingbird

/// A dog in an answer.
package struct DogMessage: Codable, Equatable, Sendable, ResponseEncodable {
  package var tag: UUID
  package var name: String
  package var chip: String?
  package var age: Int
  package var revision: Int

  init(_ dog: Dog) { (tag, name, chip, age, revision) = (dog.tag, dog.name, dog.chip, dog.age, dog.revision) }
}

/// A page of dogs, sorted by name.
package struct DogPage: Codable, Equatable, Sendable, ResponseEncodable {
  package var dogs: [DogMessage]
  /// The number of dogs on all pages.
  package var total: Int
  /// The offset of the next page; nil for the last one.
  package var next: Int?
}

/// A new dog.
package struct NewDog: Codable, Sendable {
  package var name: String
  package var chip: String?
  package var age: Int?

  package init(name: String, chip: String? = nil, age: Int? = nil) { (self.name, self.chip, self.age) = (name, chip, age) }
}

/// Changes of a dog. What is nil stays as it is.
package struct DogUpdate: Codable, Sendable {
  /// The revision that the client has read.
  package var revision: Int
  package var name: String?
  package var chip: String?
  package var age: Int?

  package init(revision: Int, name: String? = nil, chip: String? = nil, age: Int? = nil) {
    (self.revision, self.name, self.chip, self.age) = (revision, name, chip, age)
  }
}

/// Why a request was refused.
package struct Refusal: Codable, Equatable, Sendable, ResponseEncodable {
  package var reason: String
  /// With a conflict, the dog as it is now.
  package var current: DogMessage?
}
