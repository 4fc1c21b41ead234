import HoldfastStore

/// The history of a file. It determines whether one version of a store descends from another.
///
/// If a file is copied and both copies are saved, the versions diverge. Treating one as a later version of the other would silently lose
/// saves. So each file lists the sessions that saved the store, with the generation that each of them saved last.
///
/// A session is an open store with its own random number. It saves each version on top of the version that it saved or loaded before. When
/// it loads an older version, such as a restored backup, it gets a new number. Therefore, a version that contains a save of a session also
/// contains the earlier saves of that session, and the versions on which they were based.
///
/// A file lists the latest ``most`` sessions. If that many others have saved the store since this process read it, the current version
/// can't be recognized as a descendant.
struct Lineage: Equatable, Sendable {
  /// The last save of a session.
  struct Save: Equatable, Sendable {
    var session: UInt64
    var generation: Int64
  }

  /// The latest save comes first; each session occurs once.
  private(set) var saves: [Save] = []

  /// The maximum number of sessions in a file.
  static let most = 32

  init() {}

  /// A random number for a session.
  static func newSession() -> UInt64 { UInt64.random(in: 0...UInt64.max) }

  /// Adds a save.
  mutating func append(_ save: Save) {
    saves.removeAll { $0.session == save.session }
    saves = [save] + saves.prefix(Lineage.most - 1)
  }

  /// Whether this version is based on another one or is equal to it.
  func descends(from other: Lineage) -> Bool {
    guard let last = other.saves.first else { return false }
    return saves.contains { $0.session == last.session && $0.generation >= last.generation }
  }

  // MARK: In a file

  /// The last save in a file's header, as a token; nil if it has no saves.
  static func lastSave(_ bytes: [UInt8]) -> GenerationToken? {
    Lineage(bytes).saves.first.map { GenerationToken(session: $0.session, number: UInt64(bitPattern: $0.generation)) }
  }

  /// Decodes the lineage in a file's header. It is empty if the bytes aren't valid.
  init(_ bytes: [UInt8]) {
    guard bytes.count.isMultiple(of: 16), bytes.count <= 16 * Lineage.most else { return }
    bytes.withUnsafeBytes { bytes in
      saves = stride(from: 0, to: bytes.count, by: 16).map { place in
        Save(
          session: UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self)),
          generation: Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: place + 8, as: Int64.self)))
      }
    }
  }

  /// For each save, the session and the generation, as little-endian 64-bit integers.
  var bytes: [UInt8] {
    saves.flatMap { save in
      withUnsafeBytes(of: (save.session.littleEndian, save.generation.littleEndian)) { Array($0) }
    }
  }

  /// The digest of all bytes of a file. It identifies a file that doesn't record the session that wrote it.
  static func digest(of reader: FileReader) throws -> UInt64 {
    reader.rewind()
    var digest = ContentDigest()
    while let piece = try reader.next() { digest.update(piece) }
    return digest.value
  }
}
