#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The texts that the framework keeps in a row store. On disk: do not change.
struct RowStoreSettings {
  /// The identity of the store, and the hashes of its model.
  private struct Identity: Codable {
    var version: Int
    var uuid: String
    var hashes: [String: Data]
    var layouts: [String: Data]
  }

  private enum Name {
    static let identity = "holdfast", model = "holdfast.model", metadata = "holdfast.metadata", keys = "holdfast.keys"
  }

  private static let version = 1

  let storeUUID: String
  let versionHashes: [String: [UInt8]]
  let layoutHashes: [String: [UInt8]]
  /// The user metadata.
  var metadata: [String: StoreValue]
  /// The next key to reserve, by the name of the root entity. Missing names have not reserved any.
  var nextKeys: [String: ObjectKey]

  // MARK: Reading

  /// Reads the texts of a store; nil for a new store.
  init?(_ texts: [String: String], _ location: StoreLocation?) throws {
    guard let identity = texts[Name.identity] else {
      if texts.isEmpty { return nil }
      throw RowStoreSettings.damaged("The store's identity is missing.", location)
    }
    do {
      let stored = try RowStoreSettings.decode(Identity.self, identity)
      guard stored.version == RowStoreSettings.version else {
        throw StoreError(
          .newerFormat, operation: "open the store", path: location?.description,
          reason: "This version of Holdfast can't read the store's settings. Open the store with a newer version.")
      }
      // Object IDs contain it; with an empty one they would look like those of unsaved objects.
      guard UUID(uuidString: stored.uuid)?.uuidString == stored.uuid else {
        throw RowStoreSettings.damaged("The store's UUID is invalid.", location)
      }
      storeUUID = stored.uuid
      versionHashes = stored.hashes.mapValues { Array($0) }
      layoutHashes = stored.layouts.mapValues { Array($0) }
      metadata = try texts[Name.metadata].map { try RowStoreSettings.decode([String: StoreValue].self, $0) } ?? [:]
      nextKeys = try texts[Name.keys].map { try RowStoreSettings.decode([String: ObjectKey].self, $0) } ?? [:]
      guard nextKeys.values.allSatisfy({ $0 > 0 }) else { throw RowStoreSettings.damaged("The next keys are invalid.", location) }
    } catch let error as DecodingError {
      throw RowStoreSettings.damaged("The settings can't be decoded.", location, error)
    }
  }

  /// The settings of a new store.
  init(new model: ManagedObjectModel) {
    storeUUID = SaveOrigin.newID().uuidString
    versionHashes = model.entityVersionHashesByName
    layoutHashes = model.entityLayoutHashesByName
    metadata = [:]
    nextKeys = [:]
  }

  /// The model that the store was created with.
  static func model(_ texts: [String: String], _ location: StoreLocation?) throws -> ManagedObjectModel? {
    guard let text = texts[Name.model] else { return nil }
    do { return try ManagedObjectModel.decoded(canonicalJSON: Array(text.utf8)) } catch {
      throw damaged("The model can't be decoded.", location, error)
    }
  }

  // MARK: Writing

  /// The texts of a new store.
  func texts(of model: ManagedObjectModel) throws -> [String: String] {
    let identity = Identity(
      version: RowStoreSettings.version, uuid: storeUUID, hashes: versionHashes.mapValues { Data($0) },
      layouts: layoutHashes.mapValues { Data($0) })
    return [
      Name.identity: try RowStoreSettings.encode(identity), Name.model: String(decoding: try model.canonicalJSON(), as: UTF8.self),
      Name.metadata: try metadataText().value, Name.keys: try keysText().value,
    ]
  }

  /// The text of the user metadata, with its name.
  func metadataText() throws -> (name: String, value: String) {
    do { return (Name.metadata, try RowStoreSettings.encode(metadata)) } catch {
      throw StoreError(
        .unstorableValue, operation: "write the metadata",
        reason: "The metadata has a value that can't be stored, such as the ID of an object that was never saved.", cause: error)
    }
  }

  /// The text of the next keys, with its name.
  func keysText() throws -> (name: String, value: String) { (Name.keys, try RowStoreSettings.encode(nextKeys)) }

  private static func encode(_ value: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    encoder.nonConformingFloatEncodingStrategy = .convertToString(positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
    return String(decoding: try encoder.encode(value), as: UTF8.self)
  }

  private static func decode<Value: Decodable>(_ type: Value.Type, _ text: String) throws -> Value {
    try HistoryCoding.decode(type, from: text.utf8)
  }

  private static func damaged(_ reason: String, _ location: StoreLocation?, _ cause: (any Error)? = nil) -> StoreError {
    StoreError(
      .damaged, operation: "open the store", path: location?.description, reason: "\(reason) Restore the store from a backup.",
      cause: cause)
  }
}
