import HoldfastEncryption
import HoldfastFiles
import HoldfastStore
import HoldfastStoreConformance
import TestSupport
import Testing

#if Encryption
  import Crypto
#endif

@Suite struct EncryptedFileSystemTests {
  private static let chunk = 16_384
  private let folder = TemporaryFolder()

  private static func bytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) } }

  @Test(arguments: TestCipher.allCases) func filesOfEverySizeAreReadAsTheyWereWritten(cipher: TestCipher) throws {
    for count in [0, 1, Self.chunk - 1, Self.chunk, Self.chunk + 1, 2 * Self.chunk, 200_000, 65 * Self.chunk + 7] {
      let file = try EncryptedFile(cipher.fileSystem(), in: folder)
      try file.create("\(count)", Self.bytes(count))
      // Another instance has only what is in the file.
      let again = try EncryptedFile(cipher.fileSystem(), in: folder)
      let areEqual = try again.read("\(count)") == Self.bytes(count) && again.read("\(count)", pieces: 5_000) == Self.bytes(count)
      #expect(areEqual, "\(count) bytes")
      #expect(try again.fileSystem.status(of: "\(count)", in: again.folder).identity.size == Int64(count))
      let size = try #require(TestFile.size(folder.file("\(count)")))
      #expect(size == (count == 0 ? 0 : 64 + count + (count + Self.chunk - 1) / Self.chunk * 28))
    }
  }

  @Test(arguments: TestCipher.allCases) func everyOrderOfWritesAndSizesLeavesWhatAPlainFileHas(cipher: TestCipher) throws {
    var random = SeededGenerator("Random writes to an encrypted file")
    for round in 0..<TestTier.count(12, full: 200) {
      let (encrypted, plain) = (try EncryptedFile(cipher.fileSystem(), in: folder), try EncryptedFile(POSIXFileSystem(), in: folder))
      try encrypted.create("encrypted \(round)") { file in
        try plain.create("plain \(round)") { other in
          for _ in 0..<12 {
            let size = try plain.fileSystem.status(of: other).identity.size
            switch Int.random(in: 0..<6, using: &random) {
            case 0:
              let new = Int64.random(in: 0...size + 20_000, using: &random)
              try encrypted.fileSystem.setSize(new, of: file)
              try plain.fileSystem.setSize(new, of: other)
            case 1:
              // Sizes at which chunks end.
              let new = Int64(Int.random(in: 0...4, using: &random) * Self.chunk)
              try encrypted.fileSystem.setSize(new, of: file)
              try plain.fileSystem.setSize(new, of: other)
            default:
              let bytes = Self.bytes(Int.random(in: 1...40_000, using: &random))
              let offset = Bool.random(using: &random) ? size : Int64.random(in: 0...size + 100, using: &random)
              try encrypted.fileSystem.writeAll(bytes, to: file, at: offset)
              try plain.fileSystem.writeAll(bytes, to: other, at: offset)
            }
            let areEqual = try encrypted.read(file) == plain.read(other)
            #expect(areEqual, "Seed \(random.seed), round \(round)")
            #expect(try encrypted.fileSystem.status(of: file).identity.size == plain.fileSystem.status(of: other).identity.size)
          }
        }
      }
      let again = try EncryptedFile(cipher.fileSystem(), in: folder)
      let areEqual = try again.read("encrypted \(round)") == plain.read("plain \(round)")
      #expect(areEqual, "Seed \(random.seed), round \(round)")
    }
  }

  // MARK: Changed files

  /// Two full chunks and a short one.
  private func encrypted(_ cipher: TestCipher, _ name: String = "file") throws -> (EncryptedFile, contents: [UInt8], bytes: [UInt8]) {
    let file = try EncryptedFile(cipher.fileSystem(), in: folder)
    let contents = Self.bytes(2 * Self.chunk + 100)
    try file.create(name, contents)
    return (file, contents, TestFile.read(folder.file(name)))
  }

  /// The code of the error with which reading changed bytes ends; nil if they are read.
  private func code(of bytes: [UInt8], _ file: EncryptedFile) throws -> StoreError.Code? {
    TestFile.write(bytes, to: folder.file("file"))
    do {
      _ = try file.read()
      return nil
    } catch let error as FileSystemError { return try #require(error.detail).code }
  }

  @Test(arguments: TestCipher.allCases) func everyChangedByteIsFound(cipher: TestCipher) throws {
    let (file, _, bytes) = try encrypted(cipher)
    for place in Array(0..<64) + Array(stride(from: 64, to: bytes.count, by: TestTier.step(487))) {
      var changed = bytes
      changed[place] ^= 1 << UInt8(place % 8)
      let found = try code(of: changed, file)
      let expected: StoreError.Code =
        switch place {
        case 0..<8: .notAStore
        case 8..<12: .newerFormat
        default: .damaged
        }
      #expect(found == expected, "Byte \(place)")
    }
    #expect(try code(of: bytes, file) == nil)
  }

  @Test(arguments: TestCipher.allCases) func aTruncatedFileIsNeverReadAsAShorterOne(cipher: TestCipher) throws {
    let (file, _, bytes) = try encrypted(cipher)
    let (chunk, header) = (Self.chunk + 28, 64)
    // All lengths near the ends of chunks, and some between them.
    let lengths = (header..<bytes.count).filter { ($0 - header) % chunk < 60 || ($0 - header) % chunk > chunk - 5 || $0 % 1009 == 0 }
    for length in lengths {
      TestFile.write(Array(bytes[..<length]), to: folder.file("file"))
      let read = Result { try file.read() }
      switch read {
      // Nothing is left of the first chunk. No store's format accepts an empty file.
      case .success(let contents): #expect(contents.isEmpty && length <= header + 28, "\(length) bytes")
      case .failure(let error): #expect((error as? FileSystemError)?.detail?.code == .damaged, "\(length) bytes")
      }
    }
  }

  /// Also behind a full chunk, where they could be the beginning of another one.
  @Test(arguments: TestCipher.allCases) func appendedBytesAreFound(cipher: TestCipher) throws {
    for size in [1, Self.chunk - 1, Self.chunk, 2 * Self.chunk] {
      let file = try EncryptedFile(cipher.fileSystem(), in: folder), name = "file of \(size)"
      try file.create(name, Self.bytes(size))
      let bytes = TestFile.read(folder.file(name))
      for count in [1, 27, 28, 29, 100] {
        let found = try code(of: bytes + [UInt8](repeating: 0, count: count), file)
        #expect(found == .damaged, "\(count) bytes behind \(size)")
      }
      #expect(try code(of: bytes, file) == nil)
    }
  }

  @Test(arguments: TestCipher.allCases) func chunksThatWereExchangedRepeatedLeftOutOrTakenFromAnotherFileAreFound(cipher: TestCipher) throws
  {
    let (file, _, bytes) = try encrypted(cipher)
    let (_, _, others) = try encrypted(cipher, "other")
    let size = Self.chunk + 28
    let header = Array(bytes[..<64])
    let chunks = [bytes[64..<64 + size], bytes[64 + size..<64 + 2 * size], bytes[(64 + 2 * size)...]]
    let foreign = others[64..<64 + size]
    for order in [
      [chunks[1], chunks[0], chunks[2]], [chunks[0], chunks[0], chunks[2]], [chunks[0], chunks[2]], chunks + [chunks[2]],
      [foreign, chunks[1], chunks[2]], [chunks[0], chunks[1]],
    ] {
      #expect(try code(of: header + order.flatMap { $0 }, file) == .damaged)
    }
    #expect(try code(of: Array(others[..<64]) + chunks.flatMap { $0 }, file) == .damaged)
    #expect(try code(of: header + chunks.flatMap { $0 }, file) == nil)
  }

  // MARK: Keys

  @Test(arguments: TestCipher.allCases) func aFileIsReadWithItsKeyAmongFormerKeysAndWithNoOther(cipher: TestCipher) throws {
    try EncryptedFile(cipher.fileSystem(key: 1), in: folder).create("old", [1, 2, 3])
    let other = try EncryptedFile(cipher.fileSystem(key: 2), in: folder)
    let error = #expect(throws: FileSystemError.self) { try other.read("old") }
    #expect(error?.detail?.code == .notPermitted)
    #expect(error?.description.contains("which isn't among the keys of this store") == true)

    let both = try EncryptedFile(cipher.fileSystem(key: 2, formerKeys: [1]), in: folder)
    #expect(try both.read("old") == [1, 2, 3])
    try both.create("new", [4])
    #expect(try other.read("new") == [4], "New files have the current key.")
  }

  @Test(arguments: TestCipher.allCases) func equalContentsAreEncryptedDifferentlyEachTime(cipher: TestCipher) throws {
    let file = try EncryptedFile(cipher.fileSystem(), in: folder)
    try file.create("one", Self.bytes(1000))
    try file.create("two", Self.bytes(1000))
    let (one, two) = (TestFile.read(folder.file("one")), TestFile.read(folder.file("two")))
    #expect(zip(one[64...], two[64...]).count { $0 == $1 } < 60)
  }

  #if Encryption
    @Test(arguments: [false, true]) func aKeyThatIsTooShortIsRefused(isFormer: Bool) {
      func key(_ count: Int) -> SymmetricKey { SymmetricKey(data: [UInt8](repeating: 0, count: count)) }
      let error = #expect(throws: StoreError.self) {
        try EncryptedFileSystem(key: key(isFormer ? 16 : 15), formerKeys: isFormer ? [key(16), key(15)] : [key(16)])
      }
      #expect(error?.code == .notPermitted)
      #expect(error?.reason.hasPrefix("A key has 120 bits") == true)
    }

    /// The format must not change. The bytes come from a program that follows the module's documentation and uses Python's libraries for
    /// AES-GCM, HKDF and XXH64. The key is 0, 1, 2 … 31.
    @Test func aFileOfAnotherImplementationIsRead() throws {
      let key = SymmetricKey(data: (0..<32).map { UInt8($0) })
      let file = try EncryptedFile(EncryptedFileSystem(key: key), in: folder)
      TestFile.write(Self.foreignFile, to: folder.file("file"))
      #expect(String(decoding: try file.read(), as: UTF8.self) == "Some contents.")
    }

    private static let foreignFile: [UInt8] = [
      72, 79, 76, 68, 70, 69, 78, 67, 1, 0, 0, 0, 195, 29, 21, 168, 80, 108, 240, 47, 62, 47, 144, 48, 179, 151, 126, 34, 9, 104, 38, 244,
      100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119, 120, 121, 122, 123, 124, 125, 126,
      127, 128, 129, 130, 131, 200, 201, 202, 203, 204, 205, 206, 207, 208, 209, 210, 211, 96, 169, 206, 223, 137, 105, 188, 17, 140, 20,
      68, 109, 46, 90, 146, 200, 14, 230, 167, 0, 202, 5, 227, 103, 194, 9, 22, 13, 19, 211,
    ]
  #endif

  // MARK: Use of the system

  @Test func aNewFileIsWrittenInOneCallForEachMebibyte() throws {
    let disk = SimulatedFileSystem()
    let fileSystem = EncryptedFileSystem(ScramblingCipher(), base: disk)
    let folder = try fileSystem.openDirectory("/")
    let file = try fileSystem.create("file", in: folder)
    let bytes = Self.bytes(1 << 20)
    for piece in 0..<4 { try fileSystem.writeAll(bytes, to: file, at: Int64(piece) << 20) }
    #expect(disk.count(of: .write) == 4)
    // The chunk that was the last one is sealed again with each further piece.
    #expect(disk.count(of: .read) == 3)
  }
}
