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
final class XMLRowReader {
  private let loader: TableLoader
  private let model: XMLModel
  let options: XMLStoreOptions
  private let errors: XMLErrors
  private let mostListed: Int
  private var identity: StoreIdentity?
  private var notes = XMLRowNotes()
  /// The row builder and field table of each entity, by index; nil until its first object.
  @exclusivity(unchecked) private var builders: [RowBatchBuilder?]
  @exclusivity(unchecked) private var tables: [XMLFieldTable?]
  /// The entity of the current object, with its field table and row builder.
  @exclusivity(unchecked) private(set) var entity: EntityIndex = -1
  @exclusivity(unchecked) private(set) var fields = XMLFieldTable(nil)
  @exclusivity(unchecked) private var builder: RowBatchBuilder?
  /// For each entity, the slots whose values can be in external files.
  private let externalSlots: [[SlotIndex]]
  let values: RowValues
  /// The valid keys.
  let keyRange = TableLoader.keys.lowerBound.rawValue...TableLoader.keys.upperBound.rawValue
  @exclusivity(unchecked) var key: ObjectKey = 0
  /// The index of the current or last field.
  @exclusivity(unchecked) var field = -1
  /// Whether the current attribute contains the name of an external file.
  @exclusivity(unchecked) private var isExternal = false
  /// For each field, the number of elements in the current object, plus the keys in its lists.
  private let seen: UnsafeMutableBufferPointer<Int>
  /// The number of elements in the current object.
  @exclusivity(unchecked) var memberCount = 0
  /// The text of the current attribute.
  @exclusivity(unchecked) private var text: UnsafeMutableRawBufferPointer = .allocate(byteCount: 4096, alignment: 1)
  @exclusivity(unchecked) private var textCount = 0
  /// The links of each relationship in `model.listed`, in document order, and their order keys.
  private let links: UnsafeMutableBufferPointer<[SaveRequest.Link]>
  @exclusivity(unchecked) private var orderKeys: [[Int64]]
  /// The first list whose length differs from that of its order keys in the metadata; nil if there is none.
  private(set) var lengthMismatch: StoreError?
  /// For each relationship, the number of the current object's links.
  private let linkCounts: UnsafeMutableBufferPointer<Int>
  /// The relationships in which the current object has links. Only these are reset, because a model can have many relationships.
  @exclusivity(unchecked) private(set) var linked: [Int] = []
  /// For each relationship in `model.listed`, its index among the model's ordered relationships; nil for one that isn't ordered.
  private let orderedPlaces: [Int?]
  /// The links of each relationship in `model.stated`.
  private let stated: UnsafeMutableBufferPointer<LinkDigest>
  /// The keys for `stated` in an object that ``takeObjects(_:)`` is reading.
  @exclusivity(unchecked) var statedTargets: [(place: Int, target: ObjectKey)] = []
  /// The beginning of objects of the current entity, up to the key.
  @exclusivity(unchecked) private(set) var beginning: NameTable?
  @exclusivity(unchecked) private var beginnings: [NameTable?]
  /// The share of the file that was read, from 0 to 1.
  @exclusivity(unchecked) var progress = 0.0

  init(_ loader: TableLoader, _ model: XMLModel, _ options: XMLStoreOptions, _ errors: XMLErrors, _ mostListed: Int) {
    self.loader = loader
    self.mostListed = mostListed
    self.model = model
    self.options = options
    self.errors = errors
    let entities = loader.model.entities
    builders = entities.map { _ in nil }
    tables = entities.map { _ in nil }
    beginnings = entities.map { _ in nil }
    externalSlots = entities.map(\.externalSlots)
    values = RowValues(slotCount: entities.map(\.slots.count).max() ?? 0)
    seen = .allocate(capacity: model.entities.map(\.fields.count).max() ?? 0)
    seen.initialize(repeating: 0)
    links = .allocate(capacity: model.listed.count)
    links.initialize(repeating: [])
    linkCounts = .allocate(capacity: model.listed.count)
    linkCounts.initialize(repeating: 0)
    orderKeys = model.listed.map { _ in [] }
    let ordered = Dictionary(uniqueKeysWithValues: loader.model.orderedRelationships.enumerated().map { ($0.element, $0.offset) })
    orderedPlaces = model.listed.map { ordered[$0] }
    stated = .allocate(capacity: model.stated.count)
    stated.initialize(repeating: LinkDigest())
  }

  deinit {
    seen.deallocate()
    text.deallocate()
    links.deinitialize()
    links.deallocate()
    linkCounts.deallocate()
    stated.deinitialize()
    stated.deallocate()
  }

  func damaged(_ what: String, _ line: String = "") -> StoreError {
    let object = key == 0 ? "an object" : "object z\(key)"
    let property = field >= 0 && field < fields.count ? "\(fields.name(field)) of " : ""
    return errors.damaged(what, " Location: \(property)\(object).\(line)")
  }

  // MARK: The document

  func begin(_ metadata: XMLMetadata) throws {
    notes = metadata.notes
    identity = try loader.begin(metadata.header(for: loader.model, derivesModel: options.derivesModel))
    if let history = metadata.history { loader.take(history: history) }
  }

  /// Records that the digest is wrong or missing.
  func noteUnverified() { loader.isVerified = false }

  /// Passes the last rows, links and orders to the loader.
  func finish() throws {
    for (entity, builder) in builders.enumerated() {
      if let builder, builder.count > 0 { try loader.take(builder.seal(), of: EntityIndex(entity)) }
    }
    for (place, relationship) in model.listed.enumerated() {
      if relationship.storesLinks { loader.take(links: links[place], of: relationship) }
      if relationship.isOrdered { loader.take(order: links[place], keys: orderKeys[place], of: relationship) }
      links[place] = []
      orderKeys[place] = []
    }
    for (place, relationship) in model.stated.enumerated() { loader.take(stated: stated[place], of: relationship) }
  }

  // MARK: Objects

  func beginObject(type: UnsafeRawBufferPointer, id: UnsafeRawBufferPointer) throws {
    (key, field, memberCount) = (0, -1, 0)
    guard let found = model.entityNames.place(named: type, after: max(entity.rawValue, 0) - 1) ?? place(ofEntity: type) else {
      throw errors.unknown("an object of the entity \(StoreError.quotedName(String(decoding: type, as: UTF8.self)))")
    }
    if found != entity.rawValue || builder == nil { try change(to: EntityIndex(found)) }
    key = try reference(id)
    clear()
  }

  /// Removes the contents of the former object.
  @inline(__always) func clear() {
    values.clear()
    for place in 0..<fields.count { seen[place] = 0 }
    if !linked.isEmpty { resetLinkCounts() }
  }

  private func resetLinkCounts() {
    for place in linked { linkCounts[place] = 0 }
    linked.removeAll(keepingCapacity: true)
  }

  /// Finds an entity without regard to case.
  private func place(ofEntity type: UnsafeRawBufferPointer) -> Int? {
    let name = String(decoding: type, as: UTF8.self).uppercased()
    return model.entities.firstIndex { $0.name == name }
  }

  private func change(to found: EntityIndex) throws {
    guard let identity else { throw damaged("An object precedes the store's header.") }
    if model.entities[found].isAbstract {
      throw damaged("The entity \(loader.model.entities[found].name) is abstract and can't have objects.")
    }
    entity = found
    let table = tables[found] ?? XMLFieldTable(model.entities[found])
    let maker = builders[found] ?? RowBatchBuilder(entity: loader.model.entities[found], identity: identity)
    (tables[found], builders[found]) = (table, maker)
    (fields, builder) = (table, maker)
    beginning =
      beginnings[found] ?? NameTable([(before: XMLFormat.objectBegins, name: model.entities[found].name, behind: XMLFormat.behindType)])
    beginnings[found] = beginning
  }

  func endObject() throws {
    field = -1
    guard let builder else { return }
    if values.isTooLarge { throw damaged("The values of the object have more than 2 GiB together.") }
    if notes.hasOrderKeys { takeOrders() }
    builder.append(values.row, key: key, version: notes.version(of: key))
    if builder.isFull { try loader.take(builder.seal(), of: entity) }
  }

  /// Replaces the object's default order keys with those in the metadata, if there are any.
  ///
  /// Another program that has changed a list keeps the metadata. If the length has changed, the list keeps the default keys.
  private func takeOrders() {
    for listed in linked {
      guard let place = orderedPlaces[listed], let keys = notes.orderKeys(place, of: key) else { continue }
      guard keys.count == linkCounts[listed] else {
        if lengthMismatch == nil { lengthMismatch = damaged("The number of order keys doesn't match the number of destinations.") }
        continue
      }
      orderKeys[listed].replaceSubrange((orderKeys[listed].count - keys.count)..., with: keys)
    }
  }

  /// Finds the field of a name. Elements usually appear in the order in which they are written.
  @inline(__always) private func find(_ name: UnsafeRawBufferPointer) throws {
    memberCount += 1
    if memberCount > options.maximumMemberCount { throw errors.limit("An object has more than \(options.maximumMemberCount) members.") }
    // This reader owns the table, so the call doesn't need to retain it.
    let place = Unmanaged.passUnretained(fields)._withUnsafeGuaranteedRef { $0.place(named: name, after: field) }
    guard let found = place ?? self.place(ofField: name) else {
      field = -1
      throw errors.unknown(
        "a property \(StoreError.quotedName(String(decoding: name, as: UTF8.self))) of \(loader.model.entities[entity].name)")
    }
    field = found
    seen[found] += 1
  }

  private func place(ofField name: UnsafeRawBufferPointer) -> Int? {
    let name = String(decoding: name, as: UTF8.self).lowercased()
    return fields.entity?.fields.firstIndex { $0.name == name }
  }

  // MARK: Attributes

  func beginAttribute(name: UnsafeRawBufferPointer, type: UnsafeRawBufferPointer) throws {
    try find(name)
    textCount = 0
    guard case .attribute(let slot, _) = fields.kind(field) else { throw damaged("A relationship is written as an attribute.") }
    if seen[field] > 1 { throw damaged("The attribute appears twice.") }
    isExternal = false
    if XMLRowReader.equal(type, fields.type(field)) { return }
    isExternal = type.elementsEqual("external".utf8) && externalSlots[entity].contains(slot)
    if !isExternal { throw damaged("The attribute's type differs from the model's.") }
  }

  @inline(__always) private static func equal(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
    if a.count != b.count { return false }
    for index in 0..<a.count where a[index] != b[index] { return false }
    return true
  }

  @inline(__always) func characters(_ characters: UnsafeRawBufferPointer) throws {
    guard let source = characters.baseAddress, let base = text.baseAddress else { return }
    if textCount + characters.count > text.count { return try grow(characters) }
    (base + textCount).copyMemory(from: source, byteCount: characters.count)
    textCount += characters.count
  }

  private func grow(_ characters: UnsafeRawBufferPointer) throws {
    if textCount + characters.count > options.maximumTextByteCount { throw tooLarge() }
    let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: 2 * (textCount + characters.count), alignment: 1)
    larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: text[..<textCount]))
    text.deallocate()
    text = larger
    try self.characters(characters)
  }

  private func tooLarge() -> StoreError { errors.limit("A value has more than \(options.maximumTextByteCount) bytes.") }

  func endAttribute() throws {
    guard case .attribute(let slot, let type) = fields.kind(field) else { return }
    if textCount > options.maximumTextByteCount { throw tooLarge() }
    let all = UnsafeMutableRawBufferPointer(rebasing: text[..<textCount])
    isExternal ? try setFile(slot, XMLText.trimmed(UnsafeRawBufferPointer(all))) : try set(slot, type, all)
  }

  private func setFile(_ slot: SlotIndex, _ text: UnsafeRawBufferPointer) throws {
    guard let id = ExternalDataName.id(text) else { throw damaged("The text isn't the name of an external file.") }
    values.set(slot, external: id)
  }

  /// Sets a value from a text that isn't in the buffer.
  func set(_ slot: SlotIndex, _ type: AttributeType, copyOf source: UnsafeRawBufferPointer) throws {
    textCount = 0
    try characters(source)
    try set(slot, type, UnsafeMutableRawBufferPointer(rebasing: text[..<textCount]))
  }

  @inline(__always) private func set(_ slot: SlotIndex, _ type: AttributeType, _ all: UnsafeMutableRawBufferPointer) throws {
    let text = UnsafeRawBufferPointer(all)
    switch type {
    case .string, .uri: try set(slot, escaped: text)
    case .integer16: values.set(slot, integer: try whole(text, in: Int64(Int16.min)...Int64(Int16.max)))
    case .integer32: values.set(slot, integer: try whole(text, in: Int64(Int32.min)...Int64(Int32.max)))
    case .integer64: values.set(slot, integer: try whole(text, in: .min ... .max))
    case .boolean: values.set(slot, integer: try whole(text, in: 0...1))
    case .date: values.set(slot, real: try number(XMLDate.value(XMLText.trimmed(text))))
    case .double:
      let text = XMLText.trimmed(text)
      values.set(slot, real: try number(NumberText.real(text) ?? XMLText.special(text)))
    case .float:
      let text = XMLText.trimmed(text)
      values.set(slot, real: try number(NumberText.single(text).map { Double($0) } ?? XMLText.special(text)))
    case .uuid:
      let isUUID = values.set(slot, maximumByteCount: 16) { BytesText.decodeUUID(XMLText.trimmed(text), into: $0) ? 16 : nil }
      if !isUUID { throw damaged("The text isn't a valid UUID.") }
    case .decimal:
      guard let value = NumberText.decimal(XMLText.trimmed(text)) else { throw damaged("The text can't be stored as a decimal.") }
      values.set(slot, text: value.description)
    case .objectID: try set(slot, objectID: text)
    case .binaryData, .transformable, .composite, .undefined:
      let isBase64 = values.set(slot, maximumByteCount: text.count / 4 * 3) { XMLText.decodeBase64(all, into: $0) }
      if !isBase64 { throw damaged("The text isn't valid base64.") }
    }
  }

  @inline(__always) private func number(_ value: Double?) throws -> Double {
    guard let value else { throw damaged("The text isn't a number, or the number is out of range.") }
    return value
  }

  @inline(__always) func set(_ slot: SlotIndex, escaped text: UnsafeRawBufferPointer) throws {
    if !XMLText.mayHaveEscapes(text) { return values.set(slot, bytes: text) }
    let isText = values.set(slot, maximumByteCount: text.count) { XMLText.unescape(text, into: $0) }
    if !isText { throw damaged("The text has an unpaired surrogate escape.") }
  }

  private func set(_ slot: SlotIndex, objectID text: UnsafeRawBufferPointer) throws {
    // The store part of a URI can contain escaped characters.
    try set(slot, escaped: text)
    if !ObjectIDText.isURI(values.row.bytes(slot)) { throw damaged("The text isn't a valid object URI.") }
  }

  @inline(__always) private func whole(_ text: UnsafeRawBufferPointer, in range: ClosedRange<Int64>) throws -> Int64 {
    guard let value = NumberText.integer(text) ?? NumberText.integer(XMLText.trimmed(text)), range.contains(value) else {
      throw damaged("The text isn't an integer in the valid range.")
    }
    return value
  }

  // MARK: Relationships

  func relationship(name: UnsafeRawBufferPointer, destination: UnsafeRawBufferPointer, idrefs: UnsafeRawBufferPointer) throws {
    try find(name)
    if !XMLRowReader.equal(destination, fields.destination(field)) { try check(destination) }
    switch fields.kind(field) {
    case .attribute: throw damaged("An attribute is written as a relationship.")
    case .target(let slot):
      if seen[field] > 1 { throw damaged("The relationship appears twice.") }
      let target = XMLText.trimmed(idrefs)
      if !target.isEmpty { values.set(slot, integer: try reference(target).rawValue) }
    case .targets(let place, let isOrdered):
      if seen[field] > 1 { try checkContinuation() }
      seen[field] += try forEachReference(idrefs) { add($0, place, isOrdered) }
    case .stated(let place):
      if seen[field] > 1 { try checkContinuation() }
      seen[field] += try forEachReference(idrefs) { addStated($0, place) }
    }
  }

  @inline(__always) func add(_ target: ObjectKey, _ place: Int, _ isOrdered: Bool) {
    if links[place].count == links[place].capacity { makeRoom(place) }
    links[place].append(SaveRequest.Link(source: key, target: target))
    if isOrdered { orderKeys[place].append(UsualOrder.key(linkCounts[place])) }
    if linkCounts[place] == 0 { linked.append(place) }
    linkCounts[place] += 1
  }

  @inline(__always) func addStated(_ target: ObjectKey, _ place: Int) { stated[place].add(source: key, target: target) }

  /// Removes the links of the current object.
  func forgetLinks() {
    for place in linked {
      links[place].removeLast(linkCounts[place])
      if model.listed[place].isOrdered { orderKeys[place].removeLast(linkCounts[place]) }
    }
    resetLinkCounts()
  }

  /// Throws unless a further element of a list is allowed: the previous one must be full. `seen` counts the elements and the keys of a
  /// list.
  private func checkContinuation() throws {
    if seen[field] % (mostListed + 1) != 1 { throw damaged("The relationship appears twice.") }
  }

  private func check(_ destination: UnsafeRawBufferPointer) throws {
    if String(decoding: destination, as: UTF8.self).uppercased().utf8.elementsEqual(fields.destination(field)) { return }
    throw damaged("The relationship's destination differs from the model's.")
  }

  /// Calls `body` with each key of a list, and returns the number of keys.
  @inline(__always) private func forEachReference(_ idrefs: UnsafeRawBufferPointer, _ body: (ObjectKey) -> Void) throws -> Int {
    var (start, count) = (0, 0)
    while true {
      while start < idrefs.count, XMLText.isSpace(idrefs[start]) { start += 1 }
      if start == idrefs.count { return count }
      var end = start
      while end < idrefs.count, !XMLText.isSpace(idrefs[end]) { end += 1 }
      body(try reference(UnsafeRawBufferPointer(rebasing: idrefs[start..<end])))
      (start, count) = (end, count + 1)
    }
  }

  /// The key in an object ID.
  @inline(__always) private func reference(_ id: UnsafeRawBufferPointer) throws -> ObjectKey {
    guard id.first == UInt8(ascii: "z"), id.count > 1, id[1] != UInt8(ascii: "-"),
      let value = NumberText.integer(UnsafeRawBufferPointer(rebasing: id[1...])), TableLoader.keys.contains(ObjectKey(value))
    else { throw damaged("The object ID is invalid.") }
    return ObjectKey(value)
  }

  /// Reserves capacity for the expected number of links, assuming the rest of the file is like the part read so far. An array that
  /// grows by doubling would take twice the memory.
  private func makeRoom(_ place: Int) {
    let likely = Double(links[place].count) * min(1 / max(progress, 1e-6), 64) * 17 / 16
    if likely > 1024 { links[place].reserveCapacity(max(Int(likely), 2 * links[place].count)) }
  }
}
