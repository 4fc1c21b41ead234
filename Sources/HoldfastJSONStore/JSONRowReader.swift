import HoldfastAtomicStore
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Builds rows from the objects in a document.
///
/// It collects an object's values in any order, and appends the row when the object ends. One document reader owns it and calls it
/// in document order.
final class JSONRowReader {
  private let loader: TableLoader
  private let errors: JSONErrors
  private let model: JSONModel
  private var identity: StoreIdentity?
  /// The fields, index and row builder of the current entity.
  @exclusivity(unchecked) private(set) var fields = JSONFieldTable(nil)
  @exclusivity(unchecked) private(set) var entity: EntityIndex = -1
  @exclusivity(unchecked) private var builder: RowBatchBuilder?
  let values: RowValues
  /// The valid keys.
  let keyRange = TableLoader.keys.lowerBound.rawValue...TableLoader.keys.upperBound.rawValue
  /// For each slot, whether its value can be in an external file.
  @exclusivity(unchecked) private var mayBeExternal: [Bool] = []
  @exclusivity(unchecked) var key: ObjectKey = 0
  @exclusivity(unchecked) private var version: RowVersion = 1
  /// The index of the current field.
  @exclusivity(unchecked) var field = 0
  /// One bit per field: whether the current object contains it.
  @exclusivity(unchecked) private var seen: UnsafeMutableBufferPointer<UInt64> = .allocate(capacity: 0)
  /// The links of each relationship in `model.written`, in document order, and their order keys.
  private let links: UnsafeMutableBufferPointer<[SaveRequest.Link]>
  @exclusivity(unchecked) private var orderKeys: [[Int64]]
  /// The share of the file that was read, from 0 to 1.
  @exclusivity(unchecked) var progress = 0.0
  /// For each relationship, the number of the current object's links.
  private let linkCounts: UnsafeMutableBufferPointer<Int>
  /// The relationships in which the current object has links. Only these are reset, because a model can have many relationships.
  @exclusivity(unchecked) private(set) var linked: [Int] = []
  /// Whether the reader is in a list of keys.
  @exclusivity(unchecked) private var isInTargets = false
  /// The relationships whose order keys the current object contains.
  @exclusivity(unchecked) private var withOrderKeys: [Int] = []
  /// The relationship whose order keys are being read, and the number read so far.
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
    return errors.damaged(what, field == 0 ? "Location: \(object)." : "Location: \(object), member \(fields.name(field)).")
  }

  // MARK: Entities

  func begin(identity: StoreIdentity) { self.identity = identity }

  func beginEntity(_ name: String) throws {
    guard let identity, let found = loader.model.entity(named: name), !found.isAbstract else {
      throw errors.newerFormat("objects of \(StoreError.quotedName(name)), which isn't a concrete entity of the model")
    }
    entity = found.index
    fields = JSONFieldTable(model.entities[entity])
    builder = RowBatchBuilder(entity: found, identity: identity)
    let external = found.externalSlots
    mayBeExternal = found.slotIndexes.map { external.contains($0) }
    seen.deallocate()
    seen = .allocate(capacity: (fields.count + 63) / 64)
  }

  func endEntity() throws {
    guard let builder, builder.count > 0 else { return }
    try loader.take(builder.seal(), of: entity)
  }

  /// Passes links and orders to the loader.
  func finish() throws {
    for (place, relationship) in model.written.enumerated() {
      if relationship.storesLinks { loader.take(links: links[place], of: relationship) }
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
    if !linked.isEmpty { resetLinkCounts() }
    if !withOrderKeys.isEmpty { withOrderKeys.removeAll(keepingCapacity: true) }
  }

  private func resetLinkCounts() {
    for place in linked { linkCounts[place] = 0 }
    linked.removeAll(keepingCapacity: true)
  }

  func endRow() throws {
    guard key > 0, let builder else { throw damaged("The object has no key.") }
    if values.isTooLarge { throw damaged("The values of the object have more than 2 GiB together.") }
    builder.append(values.row, key: key, version: version)
    if builder.isFull { try loader.take(builder.seal(), of: entity) }
  }

  /// Finds the field of a name. Members usually appear in the order in which they are written.
  @inline(__always) func name(_ text: UnsafeRawBufferPointer) throws {
    // This reader owns the table, so the call doesn't need to retain it.
    let place = Unmanaged.passUnretained(fields)._withUnsafeGuaranteedRef { $0.place(named: text, after: field) }
    guard let found = place else {
      throw errors.newerFormat(
        "a property \(StoreError.quotedName(String(decoding: text, as: UTF8.self))) of \(name) that isn't in the model")
    }
    field = found
    let (word, bit) = (found >> 6, 1 << UInt64(found & 63) as UInt64)
    if seen[word] & bit != 0 { throw damaged("The member appears twice.") }
    seen[word] |= bit
    if found > 0 && key == 0 { throw damaged("The key isn't the first member of the object.") }
  }

  // MARK: Values

  func null() throws {
    switch fields.kind(field) {
    case .attribute, .target: break
    default: throw damaged("The value can't be null.")
    }
  }

  func boolean(_ value: Bool) throws {
    guard case .attribute(let slot, .boolean) = fields.kind(field) else { throw damaged("The value can't be a Boolean.") }
    values.set(slot, integer: value ? 1 : 0)
  }

  func number(_ text: UnsafeRawBufferPointer) throws {
    switch fields.kind(field) {
    case .key: key = try storeKey(text)
    case .version: version = RowVersion(try whole(text, in: 1...Int64.max))
    case .target(let slot): values.set(slot, integer: try storeKey(text).rawValue)
    case .attribute(let slot, let type): try set(slot, type, number: text)
    case .targets where isInTargets: try target(text)
    case .targets, .orders: throw damaged("The value can't be a number.")
    }
  }

  @inline(__always) private func set(_ slot: SlotIndex, _ type: AttributeType, number text: UnsafeRawBufferPointer) throws {
    switch type {
    case .integer16: values.set(slot, integer: try whole(text, in: Int64(Int16.min)...Int64(Int16.max)))
    case .integer32: values.set(slot, integer: try whole(text, in: Int64(Int32.min)...Int64(Int32.max)))
    case .integer64: values.set(slot, integer: try whole(text, in: .min ... .max))
    case .double, .date:
      guard let value = NumberText.real(text) else { throw damaged("The number is out of range.") }
      values.set(slot, real: value)
    case .float:
      guard let value = NumberText.single(text) else { throw damaged("The number is out of range.") }
      values.set(slot, real: Double(value))
    case .decimal:
      guard let value = NumberText.decimal(text) else { throw damaged("The number can't be stored as a decimal.") }
      values.set(slot, text: value.description)
    case .boolean, .string, .uri, .binaryData, .uuid, .transformable, .objectID, .composite, .undefined:
      throw damaged("The value can't be a number.")
    }
  }

  func string(_ text: UnsafeRawBufferPointer) throws {
    switch fields.kind(field) {
    case .key: key = try storeKey(text)
    case .version: version = RowVersion(try whole(text, in: 1...Int64.max))
    case .target(let slot): values.set(slot, integer: try storeKey(text).rawValue)
    case .attribute(let slot, let type): try set(slot, type, string: text)
    case .targets where isInTargets: try target(text)
    case .targets, .orders: throw damaged("The value can't be a string.")
    }
  }

  @inline(__always) private func set(_ slot: SlotIndex, _ type: AttributeType, string text: UnsafeRawBufferPointer) throws {
    switch type {
    case .string, .uri: values.set(slot, bytes: text)
    case .uuid:
      let isUUID = values.set(slot, maximumByteCount: 16) { BytesText.decodeUUID(text, into: $0) ? 16 : nil }
      if !isUUID { throw damaged("The string isn't a valid UUID.") }
    case .objectID:
      if !ObjectIDText.isURI(text) { throw damaged("The string isn't a valid object URI.") }
      values.set(slot, bytes: text)
    case .binaryData, .transformable:
      if mayBeExternal[slot], JSONText.isFileName(text) {
        guard let id = ExternalDataName.id(UnsafeRawBufferPointer(rebasing: text[JSONText.fileNameMark.count...])) else {
          throw damaged("The name of the external file is invalid.")
        }
        return values.set(slot, external: id)
      }
      let isBase64 = values.set(slot, maximumByteCount: text.count / 4 * 3) { BytesText.decodeBase64(text, into: $0) }
      if !isBase64 { throw damaged("The string isn't valid base64.") }
    case .integer64: values.set(slot, integer: try whole(text, in: .min ... .max))
    case .double, .date, .float:
      guard let value = JSONScalar.special(text) else { throw damaged("The value can't be a string.") }
      values.set(slot, real: value)
    case .decimal:
      guard let value = NumberText.decimal(text) else { throw damaged("The string can't be stored as a decimal.") }
      values.set(slot, text: value.description)
    case .integer16, .integer32, .boolean, .composite, .undefined: throw damaged("The value can't be a string.")
    }
  }

  @inline(__always) private func whole(_ text: UnsafeRawBufferPointer, in range: ClosedRange<Int64>) throws -> Int64 {
    guard let value = NumberText.integer(text), range.contains(value) else {
      throw damaged("The value isn't an integer in the valid range.")
    }
    return value
  }

  @inline(__always) private func storeKey(_ text: UnsafeRawBufferPointer) throws -> ObjectKey {
    guard let value = NumberText.integer(text), TableLoader.keys.contains(ObjectKey(value)) else {
      throw damaged("The value isn't a valid key.")
    }
    return ObjectKey(value)
  }

  // MARK: Links

  /// Begins a list of keys. Returns whether the current field can contain one.
  func beginTargets() -> Bool {
    if case .targets = fields.kind(field) { isInTargets = true }
    return isInTargets
  }

  func endTargets() { isInTargets = false }

  @inline(__always) private func target(_ text: UnsafeRawBufferPointer) throws {
    guard case .targets(let place, let isOrdered) = fields.kind(field) else { throw damaged("The value can't be a key.") }
    add(try storeKey(text), place, isOrdered)
  }

  @inline(__always) func add(_ target: ObjectKey, _ place: Int, _ isOrdered: Bool) {
    if links[place].count == links[place].capacity { makeRoom(place) }
    links[place].append(SaveRequest.Link(source: key, target: target))
    // Order keys other than the default ones follow the lists in the file, and replace the defaults.
    if isOrdered { orderKeys[place].append(UsualOrder.key(linkCounts[place])) }
    if linkCounts[place] == 0 { linked.append(place) }
    linkCounts[place] += 1
  }

  /// Removes the links of the current object.
  func forgetLinks() {
    for place in linked {
      links[place].removeLast(linkCounts[place])
      if model.written[place].isOrdered { orderKeys[place].removeLast(linkCounts[place]) }
    }
    resetLinkCounts()
  }

  /// Reserves capacity for the expected number of links, assuming the rest of the file is like the part read so far. An array that
  /// grows by doubling would take twice the memory.
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
      if withOrderKeys.contains(place) { throw damaged("The order keys of a relationship appear twice.") }
      withOrderKeys.append(place)
      ordered = place
      return
    }
    throw damaged("The name isn't an ordered relationship of the entity.")
  }

  func beginOrderKeys() throws { orderKeyCount = 0 }

  func orderKey(_ text: UnsafeRawBufferPointer) throws {
    guard orderKeyCount < linkCounts[ordered] else { throw damaged("There are more order keys than destination objects.") }
    orderKeys[ordered][orderKeys[ordered].count - linkCounts[ordered] + orderKeyCount] = try whole(text, in: .min ... .max)
    orderKeyCount += 1
  }

  func endOrderKeys() throws {
    if orderKeyCount != linkCounts[ordered] { throw damaged("There are fewer order keys than destination objects.") }
  }
}
