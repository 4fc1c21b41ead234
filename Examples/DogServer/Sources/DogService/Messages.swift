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

/// Changes of a dog. Properties that are missing remain unchanged. The chip can be null, which removes it.
package struct DogUpdate: Codable, Sendable {
  /// The revision that the client has read.
  package var revision: Int
  package var name: String?
  /// Nil if it is missing.
  package var chip: String??
  package var age: Int?

  package init(revision: Int, name: String? = nil, chip: String?? = nil, age: Int? = nil) {
    (self.revision, self.name, self.chip, self.age) = (revision, name, chip, age)
  }

  package init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      revision: try values.decode(Int.self, forKey: .revision), name: try values.decodeIfPresent(String.self, forKey: .name),
      chip: values.contains(.chip) ? .some(try values.decodeIfPresent(String.self, forKey: .chip)) : nil,
      age: try values.decodeIfPresent(Int.self, forKey: .age))
  }

  package func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(revision, forKey: .revision)
    try values.encodeIfPresent(name, forKey: .name)
    if let chip { try values.encode(chip, forKey: .chip) }
    try values.encodeIfPresent(age, forKey: .age)
  }

  private enum CodingKeys: String, CodingKey { case revision, name, chip, age }
}

/// Why a request was refused.
package struct Refusal: Codable, Equatable, Sendable, ResponseEncodable {
  package var reason: String
  /// With a conflict, the dog as it is now.
  package var current: DogMessage?
}
