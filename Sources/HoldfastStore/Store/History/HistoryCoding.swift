#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The values in a history or in a store's metadata as JSON, for stores that keep them. Numbers that aren't finite are encoded as text. On
/// disk: do not change.
public enum HistoryCoding {
  /// Encodes a value. Equal values have equal bytes, without line breaks.
  public static func encode(_ value: some Encodable) throws -> [UInt8] { Array(try encoder.encode(value)) }

  /// Decodes a value. An object ID of a store that isn't open is kept, even if it has a text identifier.
  ///
  /// - Throws: `DecodingError` if the bytes are of something else. It contains none of them, unlike the decoder's own errors.
  public static func decode<Value: Decodable>(_ type: Value.Type, from bytes: some Sequence<UInt8>) throws -> Value {
    do { return try decoder.decode(type, from: Data(bytes)) } catch is DecodingError {
      throw DecodingError.dataCorrupted(DecodingError.Context(codingPath: [], debugDescription: "The bytes aren't those of \(type)."))
    }
  }

  private static let encoder = {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.nonConformingFloatEncodingStrategy = .convertToString(positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    return encoder
  }()

  private static let decoder = {
    let decoder = JSONDecoder()
    decoder.nonConformingFloatDecodingStrategy = .convertFromString(positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    if let key = ManagedObjectID.isStored { decoder.userInfo[key] = true }
    return decoder
  }()
}

extension ManagedObjectModel.Entity {
  /// The values of a row by name, for a history. Values in external files are left out.
  ///
  /// - Parameters:
  ///   - row: A row of the entity.
  ///   - idPrefix: An ID from the row's store.
  ///   - isIncluded: Whether the value of a slot is included.
  public func historyValues(of row: RowView, idPrefix: ManagedObjectID, where isIncluded: (SlotIndex) -> Bool) -> [String: StoreValue] {
    var values: [String: StoreValue] = [:]
    for slot in slotIndexes where isIncluded(slot) {
      let value = withExtendedLifetime(row) { row.pointer.value(slot, in: layout, idPrefix: idPrefix) }
      if !value.isExternal { values[slots[slot].name] = value }
    }
    return values
  }
}
