import CYajl
import HoldfastAtomicStore
import HoldfastStore

/// Stops a parser that has gone far enough.
private struct Enough: Error {}

/// Follows the events of a parser through a document, checks that each is what the format has there, and hands rows over.
final class JSONDocumentReader {
  let errors: JSONErrors
  /// Why the parser was stopped.
  @exclusivity(unchecked) var failure: (any Error)?
  /// What the document says of its store, as far as it was read.
  private(set) var header = StoreFileHeader(storeUUID: "", generation: 0, versionHashes: [:])
  /// Whether all that was wanted is known, although the document goes on.
  @exclusivity(unchecked) private(set) var isSatisfied = false
  /// Whether the document has come to its end.
  var isComplete: Bool { place == .end }

  /// Called when an object of the model begins and ends: names and values in it may be told to ``withRows(_:)`` instead.
  var rowsBeginOrEnd: ((Bool) -> Void)?
  /// Whether an event came since ``takeHeard()`` was called.
  @exclusivity(unchecked) var hasHeard = false

  /// What the document says of its model, when only its header is wanted.
  let model: JSONEcho?

  /// The parser while it is under way.
  @exclusivity(unchecked) var parser: yajl_handle?
  /// Finds runs of objects, for the first save; nil when there will be none.
  var runs: RunFinder?
  /// Where the bytes begin that the parser goes over.
  @exclusivity(unchecked) private var partOffset: Int64 = 0

  private let loader: TableLoader?
  private let options: JSONStore.Options
  private let rows: JSONRowReader?
  /// ``rows``, which lives as long as this: for calls that come once for each value, without counting references.
  private let uncountedRows: Unmanaged<JSONRowReader>?
  @exclusivity(unchecked) private var place = Place.start
  @exclusivity(unchecked) private var depth = 0
  /// The member of the document that is under way, or came last.
  @exclusivity(unchecked) private var member = -1
  /// Whether the document has said that it is of this format.
  @exclusivity(unchecked) private var isRecognised = false
  /// The name that came last in an object that is not one of the model.
  @exclusivity(unchecked) private var name = ""
  /// The names so far in each such object that is under way.
  @exclusivity(unchecked) private var names: [Set<String>] = []
  /// The name of the type of a value of the metadata, when it has come; whether the value has.
  @exclusivity(unchecked) private var metadataType: String?
  @exclusivity(unchecked) private var hasMetadataValue = false

  private enum Place {
    case start
    /// In the document's object, and in the object that is the value of a member of it.
    case members, hashes, layouts, nextKeys, metadata, metadataValue, model, entities
    /// In the list of an entity's objects, in an object, in a list of keys in it, and in what it says of their order.
    case rows, row, targets, orders, orderKeys
    case end
  }

  /// The members of a document, in their order; `layouts` and the last may be missing. On disk: do not change.
  private static let members = [
    "format", "version", "uuid", "generation", "hashes", "layouts", "nextKeys", "metadata", "model", "entities", "digest",
  ]
  private static let entitiesMember = 9

  /// - Parameter loader: nil when only the header is wanted.
  init(loader: TableLoader?, errors: JSONErrors, options: JSONStore.Options) {
    self.loader = loader
    self.errors = errors
    self.options = options
    model = loader == nil ? JSONEcho() : nil
    rows = loader.map { JSONRowReader($0, errors) }
    uncountedRows = rows.map { Unmanaged.passUnretained($0) }
  }

  // MARK: Runs

  /// Is told where the bytes begin that the parser goes over next.
  func isAt(_ offset: Int) { partOffset = Int64(offset) }

  /// Tells where an object begins: its brace was gone over last.
  private func confirmRow() {
    guard let runs, let rows, let parser, runs.awaited < .max else { return }
    let mark = partOffset + Int64(yajl_get_bytes_consumed(parser)) - 1
    if mark >= runs.awaited { runs.confirm(rows.entity, at: mark) }
  }

  /// Hands over where objects lie in the file, when all of it was read and nothing is wrong with it.
  func takeRuns() { if let runs { loader?.take(runs) } }

  /// Is told how much of the file was handed over, from 0 to 1.
  func proceeded(to progress: Double) { rows?.progress = progress }

  func takeHeard() -> Bool {
    defer { hasHeard = false }
    return hasHeard
  }

  func damaged(_ what: String, at offset: Int) -> StoreError {
    refusal(errors.damaged(what, "That is before byte \(offset)."))
  }

  private func damaged(_ what: String) -> StoreError {
    if !isRecognised { return errors.notAStore() }
    if place == .row || place == .targets || place == .orders || place == .orderKeys, let rows { return rows.damaged(what) }
    return errors.damaged(what, "That is in \(JSONDocumentReader.members[member]).")
  }

  /// What is wrong with a file; before it has said that it is a store, nothing else is wrong with it.
  private func refusal(_ error: @autoclosure () -> StoreError) -> StoreError { isRecognised ? error() : errors.notAStore() }

  private func unexpected(_ what: String) -> StoreError { damaged("There is \(what) where the format has none.") }

  // MARK: Structure

  func beginObject() throws {
    try deepen()
    switch place {
    case .start: enter(.members)
    case .members where depth == 2:
      switch JSONDocumentReader.members[max(member, 0)] {
      case "hashes": enter(.hashes)
      case "layouts": enter(.layouts)
      case "nextKeys": enter(.nextKeys)
      case "metadata": enter(.metadata)
      case "model":
        enter(.model)
        model?.begin("{")
      case "entities": enter(.entities)
      default: throw unexpected("an object")
      }
    case .model:
      names.append([])
      model?.begin("{")
    case .rows:
      place = .row
      confirmRow()
      rows?.beginRow()
      rowsBeginOrEnd?(true)
    case .row:
      guard rows?.wantsOrders == true else { throw unexpected("an object") }
      place = .orders
      rowsBeginOrEnd?(false)
    default: throw unexpected("an object")
    }
  }

  private func enter(_ next: Place) {
    place = next
    names.append([])
  }

  private func deepen() throws {
    depth += 1
    if depth > options.deepestNesting {
      throw refusal(errors.limit("It has arrays or objects within more than \(options.deepestNesting) others.", ""))
    }
  }

  func endObject() throws {
    depth -= 1
    switch place {
    case .row:
      try rows?.endRow()
      place = .rows
      rowsBeginOrEnd?(false)
    case .orders:
      place = .row
      rowsBeginOrEnd?(true)
    case .model:
      names.removeLast()
      model?.end("}")
      if depth == 1 { place = .members }
    case .members:
      guard member >= JSONDocumentReader.entitiesMember else { throw damaged("It ends before its objects.") }
      place = .end
    case .entities:
      try rows?.finish()
      names.removeLast()
      place = .members
    default:
      names.removeLast()
      place = .members
    }
  }

  func beginArray() throws {
    try deepen()
    switch place {
    case .entities where depth == 3: place = .rows
    case .row:
      guard let rows, rows.beginTargets() else { throw unexpected("a list") }
      place = .targets
    case .orders:
      try rows?.beginOrderKeys()
      place = .orderKeys
    case .metadata:
      (metadataType, hasMetadataValue) = (nil, false)
      place = .metadataValue
    case .model: model?.begin("[")
    default: throw unexpected("a list")
    }
  }

  func endArray() throws {
    depth -= 1
    switch place {
    case .rows:
      try rows?.endEntity()
      place = .entities
    case .targets:
      rows?.endTargets()
      place = .row
    case .orderKeys:
      try rows?.endOrderKeys()
      place = .orders
    case .model: model?.end("]")
    case .metadataValue:
      guard hasMetadataValue else { throw damaged("A value has to be a pair of a type and a value.") }
      place = .metadata
    default: break
    }
  }

  func name(_ text: UnsafeRawBufferPointer) throws {
    if text.count > options.longestName {
      throw refusal(errors.limit("It has a name of more than \(options.longestName) bytes.", ""))
    }
    name = String(decoding: text, as: UTF8.self)
    if place == .orders { return try withRows { try $0.orderName(text) } }
    if place == .members { return try beginMember() }
    if place == .model { model?.name(text) }
    guard names[names.count - 1].insert(name).inserted else { throw damaged("It has two members of one name.") }
    if names[names.count - 1].count > options.mostMembers {
      throw errors.limit("It has an object of more than \(options.mostMembers) members.", "")
    }
    if place == .entities { try withRows { try $0.beginEntity(name) } }
  }

  private func beginMember() throws {
    guard let next = JSONDocumentReader.members.firstIndex(of: name) else {
      throw refusal(errors.newerFormat("a member \"\(name.prefix(40))\""))
    }
    // A store whose model has nothing to say there has no layouts.
    guard next == member + 1 || next == member + 2 && JSONDocumentReader.members[member + 1] == "layouts" else {
      throw refusal(damaged("The member \"\(name)\" is not where it has to be, or is there twice."))
    }
    member = next
    if member == JSONDocumentReader.entitiesMember { try beginEntities() }
  }

  private func beginEntities() throws {
    guard let loader else {
      isSatisfied = true
      throw Enough()
    }
    try withRows { try $0.begin(identity: loader.begin(header)) }
  }

  /// Calls what reads objects of the model.
  @inline(__always) func withRows(_ body: (JSONRowReader) throws -> Void) throws {
    guard let uncountedRows else { throw unexpected("an object of the model") }
    try uncountedRows._withUnsafeGuaranteedRef { try body($0) }
  }

  // MARK: Scalars

  func null() throws {
    switch place {
    case .metadataValue: try takeMetadata(.null)
    case .model: model?.scalar(.null)
    default: throw unexpected("a null")
    }
  }

  func boolean(_ value: Bool) throws {
    switch place {
    case .metadataValue: try takeMetadata(.boolean(value))
    case .model: model?.scalar(.boolean(value))
    default: throw unexpected("a truth value")
    }
  }

  func number(_ text: UnsafeRawBufferPointer) throws {
    switch place {
    case .orderKeys: try withRows { try $0.orderKey(text) }
    case .nextKeys: try takeNextKey(text)
    case .metadataValue: try takeMetadata(.number(text))
    case .members: try takeMember(number: text)
    case .model: model?.scalar(.number(text))
    default: throw unexpected("a number")
    }
  }

  func string(_ text: UnsafeRawBufferPointer) throws {
    switch place {
    case .orderKeys: try withRows { try $0.orderKey(text) }
    case .nextKeys: try takeNextKey(text)
    case .hashes: header.versionHashes[name] = try hash(text)
    case .layouts: header.layoutHashes?[name] = try hash(text)
    case .metadataValue: try takeMetadata(.string(text))
    case .members: try takeMember(string: text)
    case .model: model?.scalar(.string(text))
    default: throw unexpected("a text")
    }
  }

  private func takeMember(number text: UnsafeRawBufferPointer) throws {
    switch JSONDocumentReader.members[max(member, 0)] {
    case "version":
      guard let version = NumberText.integer(text), version >= 1 else { throw damaged("The version is no version.") }
      if version > JSONFormat.version { throw errors.newerFormat("version \(version) of the format") }
    case "generation": header.generation = try generation(text)
    default: throw unexpected("a number")
    }
  }

  private func takeMember(string text: UnsafeRawBufferPointer) throws {
    switch JSONDocumentReader.members[max(member, 0)] {
    case "format":
      isRecognised = text.elementsEqual(JSONFormat.name.utf8)
      if !isRecognised { throw errors.notAStore() }
    case "uuid":
      let uuid = String(decoding: text, as: UTF8.self)
      guard JSONMetadata.value("uuid", .string(text)) != nil, uuid == uuid.uppercased() else { throw damaged("The UUID is no UUID.") }
      header.storeUUID = uuid
    case "generation": header.generation = try generation(text)
    case "digest": break
    default: throw unexpected("a text")
    }
  }

  private func generation(_ text: UnsafeRawBufferPointer) throws -> Int64 {
    if let number = NumberText.integer(text), StoreFileHeader.generations.contains(number) { return number }
    throw damaged("The generation is no number of one.")
  }

  private func hash(_ text: UnsafeRawBufferPointer) throws -> [UInt8] {
    guard case .data(let data)? = JSONMetadata.value("binaryData", .string(text)), data.count == 32 else {
      throw damaged("The hash of an entity is not the base64 of 32 bytes.")
    }
    return Array(data)
  }

  private func takeNextKey(_ text: UnsafeRawBufferPointer) throws {
    guard let key = NumberText.integer(text), TableLoader.nextKeys.contains(key) else { throw damaged("A next key is no key.") }
    header.nextKeys[name] = key
  }

  private func takeMetadata(_ scalar: JSONMetadata.Scalar) throws {
    if let type = metadataType {
      guard !hasMetadataValue, let value = JSONMetadata.value(type, scalar) else { throw damaged("A value does not fit its type.") }
      header.metadata[name] = value
      hasMetadataValue = true
    } else if case .string(let text) = scalar {
      metadataType = String(decoding: text, as: UTF8.self)
    } else {
      throw damaged("A value has to be a pair of a type and a value.")
    }
  }
}
