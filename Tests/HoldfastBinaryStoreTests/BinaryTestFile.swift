import Foundation
import Holdfast
import HoldfastAtomicStore
import HoldfastBinaryStore
import HoldfastStore
import TestSupport

enum BinaryFileFormat: WholeFileFormat {
  static let fileName = "store.holdfast"
  static var defaultOptions: BinaryStoreOptions { BinaryStoreOptions() }
  static var unverifiedOptions: BinaryStoreOptions { BinaryStoreOptions(wholeFile: WholeFileOptions(allowsUnverified: true)) }
  static var model: ManagedObjectModel { Library.model }

  static func description(at path: String, isReadOnly: Bool, options: BinaryStoreOptions) -> StoreDescription {
    .binary(at: path, isReadOnly: isReadOnly, options: options)
  }
}

typealias BinaryTestFile = WholeFileFixture<BinaryFileFormat>

extension WholeFileFixture where Format == BinaryFileFormat {
  /// The bytes that rows take in memory, without text.
  static func rowByteCount(_ model: ManagedObjectModel, _ counts: [String: Int]) throws -> Int {
    counts.reduce(0) { $0 + $1.value * (model.entity(named: $1.key)?.layout.fixedByteCount ?? 0) }
  }
}

/// Books with every kind of attribute and relationship.
enum Library {
  static let model = Bookshelf.model(
    adding: [AttributeDescription("scan", .binaryData, isOptional: true, allowsExternalBinaryDataStorage: true)])

  /// Saves a small graph with every kind of value and link, and a large value.
  static func fill(_ context: ManagedObjectContext) throws {
    try Bookshelf.fill(context) { book, number in
      try book.setValue(.data(Data(repeating: UInt8(number), count: number == 1 ? 200_000 : 3)), forKey: "scan")
    }
  }
}
