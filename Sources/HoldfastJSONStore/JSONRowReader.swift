import HoldfastAtomicStore
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Makes rows of the objects in a document. An object's values are gathered as they come, in any order, and become a row when
/// it ends.
///
/// Owned by one document reader, which calls it in the order of the document.
final class JSONRowReader {
  private let loader: TableLoader
  private let errors: JSONErrors
  private let model: JSONModel
  private var identity: StoreIdentity?
  /// The entity whose objects come, and what makes its rows.
  @exclusivity(unchecked) private var fields = JSONFieldTable(nil)
  @exclusivity(unchecked) private(set) var entity = -1
  @exclusivity(unchecked) private var builder: RowBatchBuilder?
  private let values: RowValues
  /// By slot, whether a value may lie in a file of its own.
  @exclusivity(unchecked) private var mayBeExternal: [Bool] = []
  @exclusivity(unchecked) private var key: Int64 = 0
  @exclusivity(unchecked) private var version: Int64 = 1
  /// The place of the field whose value comes.
  @exclusivity(unchecked) private var field = 0
  /// A bit for each field that has come.
  @exclusivity(unchecked) private var seen: UnsafeMutableBufferPointer<UInt64> = .allocate(capacity: 0)
  /// The links of each of the model's written relationships, in the order of the document, and their order keys.
  private let links: UnsafeMutableBufferPointer<[SaveRequest.Link]>
  @exclusivity(unchecked) private var orderKeys: [[Int64]]
  /// How much of the file was read, from 0 to 1.
  @exclusivity(unchecked) var progress = 0.0
  /// How many links of each the object under way has.
  private let linkCounts: UnsafeMutableBufferPointer<Int>
  /// Whether keys of targets come.
  @exclusivity(unchecked) private var isInTargets = false
  /// Whether the object under way says the order keys of each.
  @exclusivity(unchecked) private var hasOrderKeys: [Bool]
  /// The relationship of which order keys come, and how many came.
  @exclusivity(unchecked) private var ordered = 0
  @exclusivity(unchecked) private var orderKeyCount = 0

  init(_ loader: TableLoader, _ errors: JSONErrors) {
    self.loader = loader
    self.errors = errors
    model = JSONModel(loader.model)
    values = RowValues(slotCount: loader.model.entities.map(\.slots.count).max() ?? 0)
    links = .allocate(capacity: model.written.count)
    links.initialize(repeating: [])
    linkCounts = .allocate(capacity: model.written.count)
    linkCounts.initialize(repeating: 0)
    orderKeys = model.written.map { _ in [] }
    hasOrderKeys = model.written.map { _ in false }
  }

  deinit {
    seen.deallocate()
    links.deinitialize()
    links.deallocate()
    linkCounts.deallocate()
  }

  private var name: String { fields.entity?.name ?? "" }

  func damaged(_ what: String) -> StoreError {
    let object = key == 0 ? "an object of \(name)" : "\(name) \(key)"
    return errors.damaged(what, field == 0 ? "That is in \(object)." : "That is \(fields.name(field)) of \(object).")
  }

  // MARK: Entities

  func begin(identity: StoreIdentity) { self.identity = identity }

  func beginEntity(_ name: String) throws {
    guard let identity, let found = loader.model.entity(named: name), !found.isAbstract else {
      throw errors.newerFormat("objects of an entity \"\(name.prefix(40))\", which has none in the model")
    }
    entity = found.index
    fields = JSONFieldTable(model.entities[entity])
    builder = RowBatchBuilder(entity: found, identity: identity)
    let external = found.externalSlots
    mayBeExternal = found.slots.indices.map { external.contains($0) }
    seen.deallocate()
    seen = .allocate(capacity: (fields.count + 63) / 64)
  }

  func endEntity() throws {
    guard let builder, builder.count > 0 else { return }
    try loader.take(builder.seal(), of: entity)
  }

  /// Hands links and orders over.
  func finish() throws {
    for (place, relationship) in model.written.enumerated() {
      if JSONModel.namesLinks(relationship) { loader.take(links: links[place], of: relationship) }
      if relationship.isOrdered { loader.take(order: links[place], keys: orderKeys[place], of: relationship) }
      links[place] = []
      orderKeys[place] = []
    }
  }

  // MARK: Objects

  func beginRow() {
    key = 0
    version = 1
    field = 0
    isInTargets = false
    values.clear()
    seen.update(repeating: 0)
    for place in linkCounts.indices {
      linkCounts[place] = 0
      hasOrderKeys[place] = false
    }
  }

  func endRow() throws {
    guard key > 0, let builder else { throw damaged("It has no key.") }
    builder.append(values.row, key: key, version: version)
    if builder.isFull { try loader.take(builder.seal(), of: entity) }
  }

  /// Finds the field of a name. They mostly come in the order in which they are written.
  @inline(__always) func name(_ text: UnsafeRawBufferPointer) throws {
    // The table is this reader's, so it need not be counted for each name.
    let place = Unmanaged.passUnretained(fields)._withUnsafeGuaranteedRef { $0.place(named: text, after: field) }
    guard let found = place else {
      throw errors.newerFormat(
        "a property \"\(String(decoding: text.prefix(40), as: UTF8.self))\" of \(name), which the model has not")
    }
    field = found
    let (word, bit) = (found >> 6, 1 << UInt64(found & 63) as UInt64)
    if seen[word] & bit != 0 { throw damaged("It has two values.") }
    seen[word] |= bit
    if found > 0 && key == 0 { throw damaged("The key of an object has to stand before everything else in it.") }
  }

  // MARK: Values

  func null() throws {
    switch fields.kind(field) {
    case .attribute, .target: break
    default: throw damaged("It may not be null.")
    }
  }

  func boolean(_ value: Bool) throws {
    guard case .attribute(let slot, .boolean) = fields.kind(field) else { throw damaged("A truth value does not fit.") }
    values.set(slot, integer: value ? 1 : 0)
  }

  func number(_ text: UnsafeRawBufferPointer) throws {
    switch fields.kind(field) {
    case .key: key = try storeKey(text)
    case .version: version = try whole(text, in: 1...Int64.max)
    case .target(let slot): values.set(slot, integer: try storeKey(text))
    case .attribute(let slot, let type): try set(slot, type, number: text)
    case .targets where isInTargets: try target(text)
    case .targets, .orders: throw damaged("A number does not fit.")
    }
  }

  @inline(__always) private func set(_ slot: Int, _ type: AttributeType, number text: UnsafeRawBufferPointer) throws {
    switch type {
    case .integer16: values.set(slot, integer: try whole(text, in: Int64(Int16.min)...Int64(Int16.max)))
    case .integer32: values.set(slot, integer: try whole(text, in: Int64(Int32.min)...Int64(Int32.max)))
    case .integer64: values.set(slot, integer: try whole(text, in: .min ... .max))
    case .double, .date:
      guard let value = NumberText.real(text) else { throw damaged("The number is too large or too small to be kept.") }
      values.set(slot, real: value)
    case .float:
      guard let value = NumberText.single(text) else { throw damaged("The number is too large or too small to be kept.") }
      values.set(slot, real: Double(value))
    case .decimal:
      guard let value = NumberText.decimal(text) else { throw damaged("The number is no decimal number that can be kept.") }
      values.set(slot, text: value.description)
    case .boolean, .string, .uri, .binaryData, .uuid, .transformable, .objectID, .composite, .undefined:
      throw damaged("A number does not fit.")
    }
  }

  func string(_ text: UnsafeRawBufferPointer) throws {
    switch fields.kind(field) {
    case .key: key = try storeKey(text)
    case .version: version = try whole(text, in: 1...Int64.max)
    case .target(let slot): values.set(slot, integer: try storeKey(text))
    case .attribute(let slot, let type): try set(slot, type, string: text)
    case .targets where isInTargets: try target(text)
    case .targets, .orders: throw damaged("A text does not fit.")
    }
  }

  @inline(__always) private func set(_ slot: Int, _ type: AttributeType, string text: UnsafeRawBufferPointer) throws {
    switch type {
    case .string, .uri: values.set(slot, bytes: text)
    case .uuid:
      let isUUID = values.set(slot, mostBytes: 16) { BytesText.decodeUUID(text, into: $0) ? 16 : nil }
      if !isUUID { throw damaged("The text is no UUID.") }
    case .objectID:
      guard ManagedObjectID(uriRepresentation: String(decoding: text, as: UTF8.self)) != nil else {
        throw damaged("The text is no object's URI.")
      }
      values.set(slot, bytes: text)
    case .binaryData, .transformable:
      if mayBeExternal[slot], JSONText.isFileName(text) {
        guard let id = ExternalDataName.id(UnsafeRawBufferPointer(rebasing: text[JSONText.fileNameMark.count...])) else {
          throw damaged("The text names no file.")
        }
        return values.set(slot, external: id)
      }
      let isBase64 = values.set(slot, mostBytes: text.count / 4 * 3) { BytesText.decodeBase64(text, into: $0) }
      if !isBase64 { throw damaged("The text is no base64.") }
    case .integer64: values.set(slot, integer: try whole(text, in: .min ... .max))
    case .double, .date, .float:
      guard let value = JSONScalar.special(text) else { throw damaged("A text does not fit.") }
      values.set(slot, real: value)
    case .decimal:
      guard let value = NumberText.decimal(text) else { throw damaged("The text is no decimal number that can be kept.") }
      values.set(slot, text: value.description)
    case .integer16, .integer32, .boolean, .composite, .undefined: throw damaged("A text does not fit.")
    }
  }

  @inline(__always) private func whole(_ text: UnsafeRawBufferPointer, in range: ClosedRange<Int64>) throws -> Int64 {
    guard let value = NumberText.integer(text), range.contains(value) else { throw damaged("The number is no whole number that fits.") }
    return value
  }

  @inline(__always) private func storeKey(_ text: UnsafeRawBufferPointer) throws -> Int64 {
    guard let value = NumberText.integer(text), TableLoader.keys.contains(value) else { throw damaged("The number is no key.") }
    return value
  }

  // MARK: Links

  /// Whether the field under way has a list of keys.
  func beginTargets() -> Bool {
    if case .targets = fields.kind(field) { isInTargets = true }
    return isInTargets
  }

  func endTargets() { isInTargets = false }

  @inline(__always) private func target(_ text: UnsafeRawBufferPointer) throws {
    guard case .targets(let place, let isOrdered) = fields.kind(field) else { throw damaged("A key does not fit.") }
    if links[place].count == links[place].capacity { makeRoom(place) }
    links[place].append(SaveRequest.Link(source: key, target: try storeKey(text)))
    // Order keys that are not the usual ones follow the lists, and replace these.
    if isOrdered { orderKeys[place].append(UsualOrder.key(linkCounts[place])) }
    linkCounts[place] += 1
  }

  /// Makes room for as many links as there will be if the file goes on as it began: a list that grows by doubling takes twice
  /// the memory.
  private func makeRoom(_ place: Int) {
    let likely = Double(links[place].count) * min(1 / max(progress, 1e-6), 64) * 17 / 16
    if likely > 1024 { links[place].reserveCapacity(max(Int(likely), 2 * links[place].count)) }
  }

  var wantsOrders: Bool {
    if case .orders = fields.kind(field) { true } else { false }
  }

  func orderName(_ text: UnsafeRawBufferPointer) throws {
    for field in fields.entity?.fields ?? [] {
      guard case .targets(let place, true) = field.kind, field.name.utf8.elementsEqual(text) else { continue }
      if hasOrderKeys[place] { throw damaged("It has two orders.") }
      hasOrderKeys[place] = true
      ordered = place
      return
    }
    throw damaged("It names no ordered relationship.")
  }

  func beginOrderKeys() throws { orderKeyCount = 0 }

  func orderKey(_ text: UnsafeRawBufferPointer) throws {
    guard orderKeyCount < linkCounts[ordered] else { throw damaged("There are more order keys than objects.") }
    orderKeys[ordered][orderKeys[ordered].count - linkCounts[ordered] + orderKeyCount] = try whole(text, in: .min ... .max)
    orderKeyCount += 1
  }

  func endOrderKeys() throws {
    if orderKeyCount != linkCounts[ordered] { throw damaged("There are fewer order keys than objects.") }
  }
}
