import Foundation
import Holdfast

/// A bow tie, with an attribute of each kind in the model.
@Entity final class BowTie: ManagedObject {
  @Attribute(.unique) var searchKey: String
  var name: String
  var id: UUID
  var isFavorite = false
  var lastWorn: Date?
  @Attribute(.range(0.0...5)) var rating = 0.0
  @Attribute(.type(.integer32)) var timesWorn = 0
  @Attribute(.external) var photoData: Data?
  @Attribute(.transformable(by: "ColorTransformer")) var tintColor: Color?
  var url: URL?
}

/// A colour. The store keeps the bytes that its transformer encodes.
struct Color: Codable, Sendable, CustomStringConvertible {
  var red: UInt8
  var green: UInt8
  var blue: UInt8

  /// The colour in the notation of web pages, such as `#287846`.
  var description: String {
    "#" + [red, green, blue].map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
