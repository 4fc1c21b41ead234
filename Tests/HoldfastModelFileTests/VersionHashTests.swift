import Foundation
import HoldfastModelFile
import HoldfastSQLiteStore
import HoldfastStore
import TestSupport
import Testing

/// The version hashes of models read from files equal those that Core Data stored.
@Suite(.enabled(if: Corpus.root != nil, "\(Corpus.isMissing)")) struct VersionHashTests {
  /// The stores that Core Data wrote, each with its model file, from the table in the corpus's description.
  static let stores: [(store: String, contents: String)] = {
    guard let root = Corpus.root, let table = try? String(contentsOfFile: "\(root)/README.md", encoding: .utf8) else { return [] }
    return table.split(separator: "\n").compactMap { line in
      let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      guard let model = cells.first(where: { $0.hasPrefix("✔ ") }) else { return nil }
      return ("sqlite/\(cells[0])", String(model.dropFirst(2)))
    }
  }()

  @Test func thereAreStores() { #expect(Self.stores.count >= 25) }

  @Test(arguments: stores) func aModelHasTheHashesOfTheStoreThatWasMadeWithIt(_ store: String, _ contents: String) throws {
    let folder = TemporaryFolder()
    for end in ["", "-wal"] where FileManager.default.fileExists(atPath: Corpus.path(store) + end) {
      try FileManager.default.copyItem(atPath: Corpus.path(store) + end, toPath: folder.file("store.sqlite\(end)"))
    }
    let administration = StoreDescription.sqlite(at: folder.file("store.sqlite")).administration
    let metadata = try administration.perform(MetadataRequest()), model = try ModelDocument(contentsOf: Corpus.path(contents)).model()
    let hashes = Dictionary(uniqueKeysWithValues: model.entities.map { ($0.name, $0.versionHash) })
    #expect(metadata.entityVersionHashes == hashes)
    #expect(metadata.isCompatible(with: model))
  }

  static let python: String? = {
    let paths = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map { "\($0)/python3" }
    return paths.first { FileManager.default.isExecutableFile(atPath: $0) }
  }()

  /// The output of a program that gets the corpus and its models; empty without python3.
  static func python(_ program: String) -> String {
    guard let python, let root = Corpus.root else { return "" }
    // It must not leave compiled files in the corpus.
    return (try? Program.run(python, ["-B", "-c", program, root] + Corpus.contents))?.output ?? ""
  }

  /// The output of an independent program: for each file the hash of each entity, the digest and the checksum.
  private static let secondOpinion: [String: [String: String]] = {
    let program = """
      import base64, sys
      sys.path.insert(0, sys.argv[1] + "/tools")
      import versionhash
      for file in sys.argv[2:]:
          hashes = versionhash.model_hashes(sys.argv[1] + "/" + file)
          said = {name: base64.b64encode(value).decode() for name, value in hashes.items()}
          said["digest"], said["checksum"] = versionhash.digest(hashes), versionhash.checksum(hashes)
          for name, value in said.items(): print(file, name, value, sep="\\t")
      """
    var said: [String: [String: String]] = [:]
    for line in python(program).split(separator: "\n") {
      let cells = line.split(separator: "\t").map(String.init)
      if cells.count == 3 { said[cells[0], default: [:]][cells[1]] = cells[2] }
    }
    return said
  }()

  @Test(.enabled(if: python != nil, "There is no python3 for a second opinion."), arguments: Corpus.contents)
  func aSecondProgramFindsTheSameHashes(_ contents: String) throws {
    let said = try #require(Self.secondOpinion[contents])
    let model = try ModelDocument(contentsOf: Corpus.path(contents)).model()
    for entity in model.entities { #expect(said[entity.name] == Data(entity.versionHash).base64EncodedString()) }
    #expect(said["digest"] == model.versionDigest)
    #expect(said["checksum"] == model.versionChecksum)
    #expect(said.count == model.entities.count + 2)
  }
}
