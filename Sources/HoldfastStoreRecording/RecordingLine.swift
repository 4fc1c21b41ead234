import Holdfast
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

// The format of recordings: a line of JSON when a request begins, and another one when it ends. On disk: do not change.
//
// Object IDs have the UUID `RecordedIDs.storeUUID` and numbers as keys, so that a recording can be read without the recorded store.

/// A line of a recording.
enum RecordingLine: Codable {
  /// A request of one of the recorded stores, which are numbered from 1. The number of the line identifies the request.
  case begin(request: RecordedRequest, store: Int)
  /// The end of the request that began in a line.
  ///
  /// The duration is nil for requests that the program didn't send: those that insert the objects which the store had before.
  case end(line: Int, answer: RecordedAnswer, seconds: Double?)

  /// The line in UTF-8, without a line feed.
  func encoded() throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.nonConformingFloatEncodingStrategy = .convertToString(positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
    return Array(try encoder.encode(self))
  }

  static func decoded(_ bytes: [UInt8]) throws -> RecordingLine {
    let decoder = JSONDecoder()
    decoder.nonConformingFloatDecodingStrategy = .convertFromString(
      positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
    // Metadata and attributes can contain IDs of stores that this process hasn't opened.
    if let key = ManagedObjectID.isStored { decoder.userInfo[key] = true }
    return try decoder.decode(RecordingLine.self, from: Data(bytes))
  }
}

/// A request to a store. Views and prepared saves are identified by the lines of their requests.
enum RecordedRequest: Codable {
  case open(RecordedOpening)
  case close
  case beginRead(ReadViewKind)
  /// Ends a view. The end of this request isn't recorded, because it can't fail.
  case endRead(view: Int)
  case fetch(FetchPlan, view: Int)
  case rows(FaultRequest, view: Int)
  case relationships(RelationshipRequest, view: Int)
  case reserveKeys([KeyDemand])
  case prepare(SaveRequest)
  case commit(save: Int)
  case abort(save: Int)
  case setMetadata([String: StoreValue])
  case externalData(ExternalDataRequest)
  /// Another optional request, by its operation. Its contents aren't recorded.
  case optional(String)
}

/// What a replay needs to know about a recorded store.
struct RecordedOpening: Codable {
  /// The only version of the format.
  static let currentFormat = 1

  var format = RecordedOpening.currentFormat
  /// The name of the store's type.
  var type: String
  /// Whether the recording begins with the objects of the first store.
  var includesContents: Bool
  var capabilities: StoreCapabilities
  var model: CodableModel
  /// The version hashes of the entities, in base64.
  var versionHashes: [String: String]

  init(type: String, capabilities: StoreCapabilities, model: ManagedObjectModel, includesContents: Bool) {
    self.type = type
    self.includesContents = includesContents
    self.capabilities = capabilities
    self.model = CodableModel(model)
    versionHashes = RecordedOpening.versionHashes(model)
  }

  static func versionHashes(_ model: ManagedObjectModel) -> [String: String] {
    Dictionary(uniqueKeysWithValues: model.entities.map { ($0.name, Data($0.versionHash).base64EncodedString()) })
  }
}

/// How a request ended.
enum RecordedAnswer: Codable {
  /// The request succeeded, without an answer to compare.
  case done
  case rows(RecordedRows)
  case destinations(RecordedDestinations)
  case keys([[ObjectKey]])
  /// The versions that the store chose instead of those in the request.
  case receipt([RecordedVersion])
  case data(byteCount: Int, digest: RecordedDigest)
  case failed(RecordedFailure)
}

/// The rows of an answer.
struct RecordedRows: Codable {
  var count: Int
  var digest: RecordedDigest
  /// Whether the sink needed no more rows, so that only the first rows are recorded.
  var isPartial: Bool
  /// The rows; nil in a recording of digests, except for counts and aggregates.
  var rows: [CodedRows]?
}

/// The destinations of a relationship.
struct RecordedDestinations: Codable {
  var count: Int
  var digest: RecordedDigest
  /// The digest of each source's destinations; nil in a recording of digests.
  var digests: [RecordedDigest]?
}

/// The version of a saved row.
struct RecordedVersion: Codable {
  var entity: EntityIndex
  var key: ObjectKey
  var version: RowVersion
}

/// An error.
struct RecordedFailure: Codable, Hashable {
  var code: StoreError.Code
  /// The objects in conflict, sorted.
  var objects: [RecordedObject] = []
}

/// An object, by the index of its root entity and its key.
struct RecordedObject: Codable, Hashable, Comparable {
  var root: EntityIndex
  var key: ObjectKey

  static func < (a: RecordedObject, b: RecordedObject) -> Bool { (a.root, a.key) < (b.root, b.key) }
}

/// A digest as 16 hexadecimal digits, because many readers of JSON have no integers of 64 bits.
struct RecordedDigest: Codable, Hashable {
  var value: UInt64

  init(_ value: UInt64) { self.value = value }

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let value = UInt64(try container.decode(String.self), radix: 16) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "The text isn't a hexadecimal number.")
    }
    self.value = value
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(String(value, radix: 16))
  }
}

// MARK: Answers

extension RecordedFailure {
  /// Describes an error.
  ///
  /// - Parameter object: Returns the recorded object with an ID.
  init(_ error: StoreError, object: (ManagedObjectID) -> RecordedObject?) {
    code = error.code
    objects = (error.conflicts.map(\.objectID) + error.constraintConflicts.map(\.objectID)).compactMap(object).sorted()
  }
}

extension RecordedDestinations {
  init(_ digests: [UInt64], count: Int, keepsDigests: Bool) {
    self.count = count
    // Weights each source's digest, so that equal destinations of different sources have different digests.
    digest = RecordedDigest(digests.enumerated().reduce(0) { $0 &+ $1.element &* UInt64(2 * $1.offset + 1) })
    self.digests = keepsDigests ? digests.map { RecordedDigest($0) } : nil
  }
}

// MARK: Names

extension RecordedRequest {
  /// The kind of the request, for the costs of a report.
  var kind: String {
    switch self {
    case .open: "open"
    case .close: "close"
    case .beginRead: "begin to read"
    case .endRead: "end to read"
    case .fetch(let plan, _):
      switch plan.output {
      case .rows: "fetch rows"
      case .keys: "fetch keys"
      case .count: "fetch a count"
      case .aggregates: "fetch aggregates"
      }
    case .rows: "read rows by key"
    case .relationships: "read relationships"
    case .reserveKeys: "reserve keys"
    case .prepare: "prepare a save"
    case .commit: "commit"
    case .abort: "discard a save"
    case .setMetadata: "set metadata"
    case .externalData: "read external data"
    case .optional(let operation): operation
    }
  }

  /// The request without values of objects and predicates.
  func description(_ model: ManagedObjectModel?) -> String {
    func name(_ index: EntityIndex) -> String { model?.entity(at: index)?.name ?? "entity \(index)" }
    switch self {
    case .fetch(let plan, _): return "\(kind) of \(name(plan.entity))"
    case .rows(let request, _): return "\(kind): \(request.keys.count) of \(name(request.entity))"
    case .relationships(let request, _):
      let relationship = model?.relationship(request.entity, request.relationship)?.name ?? "\(request.relationship)"
      return "\(kind): \(name(request.entity)).\(relationship) of \(request.sources.count) objects"
    case .prepare(let request): return "\(kind) of \(request.entities.map { name($0.entity) }.joined(separator: ", "))"
    case .externalData(let request): return "\(kind) of \(name(request.entity))"
    default: return kind
    }
  }
}

extension ManagedObjectModel {
  /// The entity with an index from a file.
  func entity(at index: EntityIndex) -> Entity? { entityIndexes.contains(index) ? entities[index] : nil }

  /// The relationship with an index from a file.
  func relationship(_ entity: EntityIndex, _ index: RelationshipIndex) -> Relationship? {
    guard let entity = self.entity(at: entity), index.rawValue >= 0, index.rawValue < entity.relationships.count else { return nil }
    return entity.relationships[index]
  }
}
