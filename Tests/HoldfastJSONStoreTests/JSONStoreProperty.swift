import HoldfastJSONStore
import HoldfastStore
import HoldfastStoreConformance

/// What must hold of any bytes that somebody gives as a JSON store. The fuzzer in `Fuzzing/` checks it of bytes that it makes up, a test
/// of those that it starts from.
enum JSONStoreProperty {
  /// What does not hold; nil when all does. It must not take long nor much memory either.
  static func violation(_ bytes: [UInt8]) -> String? {
    let disk = SimulatedFileSystem()
    disk.setContents(of: "store", bytes)
    // The digest is seldom right by chance.
    var options = JSONStore.Options()
    options.wholeFile.allowsUnverified = true
    options.wholeFile.file.fileSystem = disk
    let description = StoreDescription.json(at: "/store", options: options)
    _ = try? description.metadataAccess?.read()
    _ = try? description.metadataAccess?.readModel()
    do {
      let (first, metadata) = try saved(description, disk)
      options.wholeFile.allowsUnverified = false
      let (second, again) = try saved(.json(at: "/store", options: options), disk)
      // Saves differ in their generation, and so in their digest.
      if objects(first) != objects(second) { return "What was written is written otherwise when it was read again." }
      return metadata == again || first.contains("NaN") || first.contains("nan") ? nil : "The metadata differ when they are read again."
    } catch let error as StoreError {
      return error.code == .general ? "The error has no code of its own: \(error)" : nil
    } catch {
      return "What was thrown is no StoreError: \(error)"
    }
  }

  /// Opens the store, saves it, and gives its text.
  private static func saved(_ description: StoreDescription, _ disk: SimulatedFileSystem) throws -> (String, [String: StoreValue]) {
    let store = description.makeStore()
    let metadata = try store.open(model: model).userInfo
    try store.setMetadata(metadata)
    try store.close()
    return (String(decoding: disk.contents(of: "store") ?? [], as: UTF8.self), metadata)
  }

  private static func objects(_ text: String) -> Substring? {
    let start = text.firstRange(of: "\"entities\":")
    let end = text.firstRange(of: ",\n\"digest\":")
    guard let start, let end, start.upperBound <= end.lowerBound else { return nil }
    return text[start.upperBound..<end.lowerBound]
  }

  /// Every type of value, every shape of relationship.
  static let model: ManagedObjectModel = {
    do {
      let types = AttributeType.storedCases.filter { $0 != .transformable }
      return try ManagedObjectModel(entities: [
        EntityDescription(
          "A",
          attributes: types.map {
            AttributeDescription("a\($0.rawValue)", $0, isOptional: true, allowsExternalBinaryDataStorage: $0 == .binaryData)
          },
          relationships: [
            .toOne("one", to: "A", inverse: "other"), .toOne("other", to: "A", inverse: "one"),
            .toMany("list", to: "B", inverse: "owner", isOrdered: true), .toMany("set", to: "B", inverse: "holder"),
            .toMany("many", to: "C", inverse: "lots"), .toMany("same", to: "A", inverse: "same"), .toMany("own", to: "C", inverse: nil),
          ]),
        EntityDescription("B", relationships: [.toOne("owner", to: "A", inverse: "list"), .toOne("holder", to: "A", inverse: "set")]),
        EntityDescription("C", isAbstract: true, relationships: [.toMany("lots", to: "A", inverse: "many", isOrdered: true)]),
        EntityDescription("D", superentity: "C"),
      ])
    } catch { fatalError("\(error)") }
  }()
}
