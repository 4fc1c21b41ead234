import HoldfastStore
import HoldfastXMLStore

#if canImport(SimulatedFiles)
  // The fuzzer compiles these files in its own module.
  import SimulatedFiles
#else
  import HoldfastStoreConformance
  import TestSupport
#endif

/// The guarantees for any bytes opened as an XML store.
enum XMLStoreProperty {
  static let model = WholeFileProperty.model()

  private static let property = WholeFileProperty(
    model: model, description: { .xml(at: $0, options: XMLStoreOptions(wholeFile: $1)) }, content: objects)

  /// What the store does with the bytes. It does the same with objects of another form, which libxml2 reads.
  static func outcome(_ bytes: [UInt8]) -> WholeFileProperty.Outcome {
    let outcome = property.outcome(bytes), indented = indentingObjects(bytes)
    if case .violation = outcome { return outcome }
    if indented.count == bytes.count { return outcome }
    let (one, other) = (description(outcome), description(property.outcome(indented)))
    return one == other ? outcome : .violation("Objects aren't read as libxml2 reads them: \(one), but \(other)")
  }

  /// Puts a space before each object in a line of the writer's form.
  private static func indentingObjects(_ bytes: [UInt8]) -> [UInt8] {
    let beginning = Array("\n<object ".utf8)
    var result: [UInt8] = []
    for (index, byte) in bytes.enumerated() {
      result.append(byte)
      if byte == beginning[0], bytes[index...].starts(with: beginning) { result.append(0x20) }
    }
    return result
  }

  /// The content that was saved, or the error.
  private static func description(_ outcome: WholeFileProperty.Outcome) -> String {
    switch outcome {
    case .accepted(let content): String(decoding: content ?? [], as: UTF8.self)
    case .violation(let rule): rule
    case .refused(let error): "\(error)"
    }
  }

  /// The violated guarantee; nil if there is none.
  static func violation(_ bytes: [UInt8]) -> String? {
    if case .violation(let rule) = outcome(bytes) { rule } else { derivationViolation(bytes) }
  }

  /// A model that is derived from the bytes opens them, or an error says why it doesn't.
  private static func derivationViolation(_ bytes: [UInt8]) -> String? {
    let disk = SimulatedFileSystem()
    disk.setContents(of: "store", bytes)
    var options = WholeFileOptions()
    options.file.fileSystem = disk
    options.allowsUnverified = true
    let description = StoreDescription.xml(at: "/store", options: XMLStoreOptions(wholeFile: options, derivesModel: true))
    do {
      guard let model = try description.administration.perform(StoredModelRequest()) else { return nil }
      let store = description.makeStore()
      defer { try? store.close() }
      _ = try store.open(model: model, host: .none)
      return nil
    } catch let error as StoreError {
      return error.code == .general ? "The error has no specific code: \(error)" : nil
    } catch {
      return "The error isn't a StoreError: \(error)"
    }
  }

  /// The range of the objects in a file. Saves differ in their generation, which is before it, and therefore in their digest, which is
  /// after it.
  private static func objects(_ bytes: [UInt8]) -> ArraySlice<UInt8>? {
    let start = bytes.firstRange(of: Array("</databaseInfo>".utf8)), end = bytes.firstRange(of: Array("<!-- xxh64:".utf8))
    guard let start, let end, start.upperBound <= end.lowerBound else { return nil }
    return bytes[start.upperBound..<end.lowerBound]
  }
}
