import HoldfastFiles
import HoldfastStore

/// A minimal file format: a generation, the number of bytes that follow, the bytes, and a digest of everything before it.
enum TestImage {
  struct Wrong: Error, Equatable {}

  private static let headerSize = 16
  private static let digestSize = 8

  /// The image of a generation. Equal arguments give equal images.
  static func encode(_ generation: UInt64, byteCount: Int) -> [UInt8] {
    var bytes = word(generation) + word(UInt64(byteCount))
    var state = generation &+ 0x1234_5678
    for _ in 0..<byteCount {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      bytes.append(UInt8(truncatingIfNeeded: state >> 56))
    }
    return bytes + word(digest(bytes))
  }

  /// The generation of an image.
  static func decode(_ bytes: [UInt8], checksDigest: Bool = true) throws -> UInt64 {
    guard bytes.count >= headerSize + digestSize else { throw Wrong() }
    guard number(bytes[8..<16]) == UInt64(bytes.count - headerSize - digestSize) else { throw Wrong() }
    guard !checksDigest || digest(bytes.dropLast(digestSize)) == number(bytes.suffix(digestSize)) else { throw Wrong() }
    return number(bytes[0..<8])
  }

  private static func word(_ number: UInt64) -> [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) } }

  private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) } }

  /// FNV-1a with a last mixing step.
  private static func digest(_ bytes: some Sequence<UInt8>) -> UInt64 {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    hash = (hash ^ (hash >> 33)) &* 0xff51_afd7_ed55_8ccd
    return hash ^ (hash >> 33)
  }
}

/// A store of one number in a durable file, written as a store author would write it.
final class TestStore {
  let file: DurableFile
  /// The generation that this store last read or saved; 0 before the first.
  private(set) var generation: UInt64 = 0
  private let checksDigest: Bool

  init(_ path: String, _ options: DurableFileOptions = DurableFileOptions(), checksDigest: Bool = true) throws {
    file = try DurableFile(path: path, options: options)
    self.checksDigest = checksDigest
    generation = try file.read(decode) ?? 0
  }

  private func decode(_ reader: FileReader) throws -> UInt64 { try TestImage.decode(reader.allBytes(), checksDigest: checksDigest) }

  /// Saves the next generation.
  func save(byteCount: Int = 40) throws {
    let replacement = try file.beginReplacing()
    defer { replacement.abort() }
    if replacement.foundChange != .none {
      guard try replacement.read(decode) ?? 0 == generation else {
        throw StoreError(.storeReplaced, operation: "save the store", path: file.path, reason: "The file has another generation.")
      }
    }
    try TestImage.encode(generation + 1, byteCount: byteCount).withUnsafeBytes { try replacement.write($0) }
    try replacement.finish()
    do throws(StoreError) {
      try replacement.commit()
    } catch {
      // The new contents are in place anyway.
      if error.code == .durabilityUnknown { generation += 1 }
      throw error
    }
    generation += 1
  }

  /// Reads the file again.
  func reload() throws { generation = try file.read(decode) ?? 0 }

  func close() { file.close() }
}

extension FileReader {
  /// The contents of the entire file.
  func allBytes() throws -> [UInt8] {
    var bytes: [UInt8] = []
    while let chunk = try next() { bytes += chunk }
    return bytes
  }
}

extension DurableFile {
  /// The contents of the entire file; nil if there is no file.
  func contents() throws -> [UInt8]? { try read { try $0.allBytes() } }

  /// Replaces the file.
  func replace(_ bytes: [UInt8]) throws {
    let replacement = try beginReplacing()
    try bytes.withUnsafeBytes { try replacement.write($0) }
    try replacement.commit()
  }
}

/// The store error that `body` throws; nil if it throws no store error.
func storeError<Result>(_ body: () throws -> Result) -> StoreError? {
  do {
    _ = try body()
    return nil
  } catch {
    return error as? StoreError
  }
}
