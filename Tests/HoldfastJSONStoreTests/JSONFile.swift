import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastJSONStore
import HoldfastStore
import TestSupport

enum JSONFileFormat: WholeFileFormat {
  static let fileName = "store.json"
  static var defaultOptions: JSONStoreOptions { JSONStoreOptions() }
  static var unverifiedOptions: JSONStoreOptions { JSONStoreOptions(wholeFile: WholeFileOptions(allowsUnverified: true)) }
  static var model: ManagedObjectModel { Library.model }

  static func description(at path: String, isReadOnly: Bool, options: JSONStoreOptions) -> StoreDescription {
    .json(at: path, isReadOnly: isReadOnly, options: options)
  }
}

typealias JSONFile = WholeFileFixture<JSONFileFormat>

extension WholeFileFixture where Format == JSONFileFormat {
  /// Updates the digest of a file that was edited by hand.
  static func sealed(_ text: String) -> [UInt8] {
    var body = text
    if let end = body.range(of: ",\n\"digest\"") { body = String(body[..<end.lowerBound]) }
    let digest = Array(body.utf8).withUnsafeBytes { ContentDigest.value(of: $0) }
    let digits = String(digest, radix: 16)
    return Array((body + ",\n\"digest\":\"xxh64:" + String(repeating: "0", count: 16 - digits.count) + digits + "\"}\n").utf8)
  }
}

/// Books with every kind of attribute and relationship.
enum Library {
  static let model = Bookshelf.model()

  /// Saves a small graph with every kind of value and link.
  static func fill(_ context: ManagedObjectContext) throws { try Bookshelf.fill(context) }
}
