import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The header of a document: `holdfast1:xxh64:DIGEST:HEADER:MODEL`.
///
/// DIGEST is the digest of the entire file, computed while its own 16 digits are zeros. HEADER and MODEL are JSON in base64. On disk: do
/// not change.
struct DocumentHeader {
  private static let name = "holdfast", version = 1, digestName = ":xxh64:"
  private static let digitCount = 16

  /// The stored fields of a header, without the model.
  private struct Contents: Codable {
    var uuid: String
    var generation: Int64
    var lineage: Data
    var hashes: [String: Data]
    var layouts: [String: Data]?
    var nextKeys: [String: ObjectKey]
    var metadata: [String: StoreValue]
  }

  /// The range of the digest's digits in the file.
  let digits: Range<Int>
  private let encoded: (header: ArraySlice<UInt8>, model: ArraySlice<UInt8>)

  // MARK: Writing

  /// The text of a header, with zeros as its digest.
  static func text(_ header: StoreFileHeader, _ model: [UInt8]) throws -> String {
    let contents = Contents(
      uuid: header.storeUUID, generation: header.generation, lineage: Data(header.lineage),
      hashes: header.versionHashes.mapValues { Data($0) }, layouts: header.layoutHashes?.mapValues { Data($0) },
      nextKeys: header.nextKeys, metadata: header.metadata)
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    encoder.nonConformingFloatEncodingStrategy = .convertToString(positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    let encoded = try encoder.encode(contents).base64EncodedString()
    let zeros = String(repeating: "0", count: digitCount)
    return "\(name)\(version)\(digestName)\(zeros):\(encoded):\(Data(model).base64EncodedString())"
  }

  /// Replaces the zeros in a file's header with the digest. Returns nil if the first header in the file isn't the given one.
  static func sealed(_ bytes: [UInt8], _ header: String) -> [UInt8]? {
    guard let found = DocumentHeader(bytes), found.text(bytes).elementsEqual(header.utf8) else { return nil }
    var sealed = bytes
    for (place, digit) in zip(found.digits, found.digest(of: bytes)) { sealed[place] = digit }
    return sealed
  }

  // MARK: Reading

  /// Finds the first header in the contents of a file; nil if there is none.
  init?(_ bytes: [UInt8]) {
    let start = Array("\(DocumentHeader.name)\(DocumentHeader.version)\(DocumentHeader.digestName)".utf8)
    guard let place = DocumentHeader.firstPlace(of: start, bytes) else { return nil }
    let end = bytes[place...].firstIndex { !DocumentHeader.isAllowed($0) } ?? bytes.count
    let parts = bytes[(place + start.count)..<end].split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    guard parts.count == 3, parts[0].count == DocumentHeader.digitCount else { return nil }
    digits = parts[0].startIndex..<parts[0].endIndex
    encoded = (parts[1], parts[2])
  }

  /// Whether the contents of a file have the header of a later version.
  static func isNewer(_ bytes: [UInt8]) -> Bool {
    guard let place = firstPlace(of: Array(digestName.utf8), bytes) else { return false }
    let number = bytes[..<place].reversed().prefix { $0 &- 0x30 < 10 }
    return !number.isEmpty && bytes[..<(place - number.count)].reversed().starts(with: name.utf8.reversed())
      && Int(String(decoding: number.reversed(), as: UTF8.self)) != version
  }

  private static func isAllowed(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
      UInt8(ascii: ":"), UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="):
      true
    default: false
    }
  }

  private static func firstPlace(of part: [UInt8], _ bytes: [UInt8]) -> Int? {
    var place = 0
    while let next = bytes[place...].firstIndex(of: part[0]) {
      if bytes[next...].starts(with: part) { return next }
      place = next + 1
    }
    return nil
  }

  private func text(_ bytes: [UInt8]) -> ArraySlice<UInt8> {
    let length = DocumentHeader.name.utf8.count + String(DocumentHeader.version).utf8.count + DocumentHeader.digestName.utf8.count
    return bytes[(digits.lowerBound - length)..<encoded.model.endIndex]
  }

  /// Whether the digest in the header matches the bytes of the file.
  func isVerified(_ bytes: [UInt8]) -> Bool { bytes[digits].elementsEqual(digest(of: bytes)) }

  /// The 16 digits of the digest.
  private func digest(of bytes: [UInt8]) -> [UInt8] {
    var digest = ContentDigest()
    digest.update(bytes[..<digits.lowerBound])
    digest.update(repeatElement(UInt8(ascii: "0"), count: DocumentHeader.digitCount))
    digest.update(bytes[digits.upperBound...])
    return TextSeal(before: "", behind: "").bytes(digest.value)
  }

  /// The header.
  func header() throws -> StoreFileHeader {
    let contents = try HistoryCoding.decode(Contents.self, from: DocumentHeader.json(encoded.header))
    // It becomes a part of file names and of the record in the lock file.
    guard UUID(uuidString: contents.uuid)?.uuidString == contents.uuid else {
      throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "The store's UUID is invalid."))
    }
    var header = StoreFileHeader(
      storeUUID: contents.uuid, generation: contents.generation, versionHashes: contents.hashes.mapValues { Array($0) },
      layoutHashes: contents.layouts?.mapValues { Array($0) }, nextKeys: contents.nextKeys, metadata: contents.metadata)
    header.lineage = Array(contents.lineage)
    return header
  }

  /// The model.
  func model() throws -> ManagedObjectModel { try ManagedObjectModel.decoded(canonicalJSON: Array(DocumentHeader.json(encoded.model))) }

  private static func json(_ base64: ArraySlice<UInt8>) throws -> Data {
    if let data = Data(base64Encoded: Data(base64)) { return data }
    throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "The header isn't base64."))
  }
}
