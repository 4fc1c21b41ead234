import HoldfastAtomicStore
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Makes rows of the objects in a document. An object's values are gathered as they come, in any order, and become a row when it ends.
///
/// Owned by one document reader, which calls it in the order of the document.
final class XMLRowReader {
  private let loader: TableLoader
  private let model: XMLModel
  private let options: XMLStore.Options
  private let errors: XMLErrors
  private let mostListed: Int
  private var identity: StoreIdentity?
  private var notes = XMLRowNotes()
  /// What makes the rows of each entity, and how its objects look, by the entity's index; nil until one comes.
  @exclusivity(unchecked) private var builders: [RowBatchBuilder?]
  @exclusivity(unchecked) private var tables: [XMLFieldTable?]
  /// The entity of the object under way, and the same for it.
  @exclusivity(unchecked) private(set) var entity = -1
  @exclusivity(unchecked) private var fields = XMLFieldTable(nil)
  @exclusivity(unchecked) private var builder: RowBatchBuilder?
  /// Whether what lies between two objects of an entity can be copied: all objects of an entity come one behind the other, and no list is
  /// in another order than its order keys, which are written anew.
  private var areCopyable = true
  /// The slots whose values may lie in files of their own, by entity.
  private let externalSlots: [Set<Int>]
  private let values: RowValues
  @exclusivity(unchecked) private var key: Int64 = 0
  /// The place of the field that came last, or comes.
  @exclusivity(unchecked) private var field = -1
  /// Whether the attribute that comes names the file of its value.
  @exclusivity(unchecked) private var isExternal = false
  /// How often each field has come.
  private let seen: UnsafeMutableBufferPointer<Int>
  /// How many elements the object under way has.
  @exclusivity(unchecked) private var memberCount = 0
  /// The text of the attribute under way.
  @exclusivity(unchecked) private var text: UnsafeMutableRawBufferPointer = .allocate(byteCount: 4096, alignment: 1)
  @exclusivity(unchecked) private var textCount = 0
  /// The links of each of the model's listed relationships, in the order of the document, and their order keys.
  private let links: UnsafeMutableBufferPointer<[SaveRequest.Link]>
  @exclusivity(unchecked) private var orderKeys: [[Int64]]
  /// How many links of each the object under way has.
  private let linkCounts: UnsafeMutableBufferPointer<Int>
  /// The links of each of the model's stated relationships.
  private let stated: UnsafeMutableBufferPointer<LinkDigest>
  /// How much of the file was read, from 0 to 1.
  @exclusivity(unchecked) var progress = 0.0

  init(_ loader: TableLoader, _ model: XMLModel, _ options: XMLStore.Options, _ errors: XMLErrors, _ mostListed: Int) {
    self.loader = loader
    self.mostListed = mostListed
    self.model = model
    self.options = options
    self.errors = errors
    let entities = loader.model.entities
    builders = entities.map { _ in nil }
    tables = entities.map { _ in nil }
    externalSlots = entities.map { Set($0.externalSlots) }
    values = RowValues(slotCount: entities.map(\.slots.count).max() ?? 0)
    seen = .allocate(capacity: model.entities.map(\.fields.count).max() ?? 0)
    seen.initialize(repeating: 0)
    links = .allocate(capacity: model.listed.count)
    links.initialize(repeating: [])
    linkCounts = .allocate(capacity: model.listed.count)
    linkCounts.initialize(repeating: 0)
    orderKeys = model.listed.map { _ in [] }
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
    return errors.damaged(what, "That is in \(property)\(object).\(line)")
  }

  // MARK: The document

  func begin(_ metadata: XMLMetadata) throws {
    notes = metadata.notes
    identity = try loader.begin(metadata.header(for: loader.model))
  }

  /// Hands the last rows, links and orders over.
  func finish() throws {
    for (entity, builder) in builders.enumerated() {
      if let builder, builder.count > 0 { try loader.take(builder.seal(), of: entity) }
    }
    for (place, relationship) in model.listed.enumerated() {
      if XMLModel.namesLinks(relationship) { loader.take(links: links[place], of: relationship) }
      if relationship.isOrdered { loader.take(order: links[place], keys: orderKeys[place], of: relationship) }
      links[place] = []
      orderKeys[place] = []
    }
    for (place, relationship) in model.stated.enumerated() { loader.take(stated: stated[place], of: relationship) }
  }

  /// Finds runs of objects that lie as this store writes them. The parser meets one when it is at the end of its tag.
  func runs() -> RunFinder {
    let (begins, behind) = (Array(XMLFormat.objectBegins.utf8), Array(XMLFormat.behindType.utf8))
    return RunFinder(separators: [""]) { line in
      guard line.starts(with: begins), let end = line[begins.count...].firstIndex(of: UInt8(ascii: "\"")),
        line[end...].starts(with: behind),
        let (key, count) = RunFinder.key(UnsafeRawBufferPointer(rebasing: line[(end + behind.count)...])),
        line[(end + behind.count + count)...].starts(with: "\">".utf8)
      else { return nil }
      return (key, end + behind.count + count + 1)
    }
  }

  /// Takes where objects lie.
  func take(_ runs: RunFinder) { if areCopyable { loader.take(runs) } }

  // MARK: Objects

  func beginObject(type: UnsafeRawBufferPointer, id: UnsafeRawBufferPointer) throws {
    (key, field, memberCount) = (0, -1, 0)
    guard let found = model.entityNames.place(named: type, after: max(entity, 0) - 1) ?? place(ofEntity: type) else {
      throw errors.unknown("an object of an entity \"\(String(decoding: type.prefix(40), as: UTF8.self))\"")
    }
    if found != entity || builder == nil { try change(to: found) }
    key = try reference(id)
    values.clear()
    for place in 0..<fields.count { seen[place] = 0 }
    for place in linkCounts.indices { linkCounts[place] = 0 }
  }

  /// Names are compared without regard to upper and lower case.
  private func place(ofEntity type: UnsafeRawBufferPointer) -> Int? {
    let name = String(decoding: type, as: UTF8.self).uppercased()
    return model.entities.firstIndex { $0.name == name }
  }

  private func change(to found: Int) throws {
    guard let identity else { throw damaged("An object stands before everything else.") }
    if model.entities[found].isAbstract { throw damaged("It has an object of the abstract entity \(loader.model.entities[found].name).") }
    if builders[found] != nil { areCopyable = false }
    entity = found
    let table = tables[found] ?? XMLFieldTable(model.entities[found])
    let maker = builders[found] ?? RowBatchBuilder(entity: loader.model.entities[found], identity: identity)
    (tables[found], builders[found]) = (table, maker)
    (fields, builder) = (table, maker)
  }

  func endObject() throws {
    field = -1
    guard let builder else { return }
    if notes.hasOrderKeys { try takeOrders() }
    builder.append(values.row, key: key, version: notes.version(of: key))
    if builder.isFull { try loader.take(builder.seal(), of: entity) }
  }

  /// Order keys that are not the usual ones stand in the metadata, and replace these.
  private func takeOrders() throws {
    for (place, relationship) in loader.model.orderedRelationships.enumerated() {
      guard let keys = notes.orderKeys(place, of: key), let listed = model.listed.firstIndex(of: relationship), linkCounts[listed] > 0
      else { continue }
      guard keys.count == linkCounts[listed] else { throw damaged("There are not as many order keys as targets.") }
      if !zip(keys, keys.dropFirst()).allSatisfy({ $0 <= $1 }) { areCopyable = false }
      orderKeys[listed].replaceSubrange((orderKeys[listed].count - keys.count)..., with: keys)
    }
  }

  /// Finds the field of a name. They mostly come in the order in which they are written.
  @inline(__always) private func find(_ name: UnsafeRawBufferPointer) throws {
    memberCount += 1
    if memberCount > options.mostMembers { throw errors.limit("It has an object of more than \(options.mostMembers) members.") }
    // The table is this reader's, so it need not be counted for each name.
    let place = Unmanaged.passUnretained(fields)._withUnsafeGuaranteedRef { $0.place(named: name, after: field) }
    guard let found = place ?? self.place(ofField: name) else {
      field = -1
      throw errors.unknown(
        "a property \"\(String(decoding: name.prefix(40), as: UTF8.self))\" of \(loader.model.entities[entity].name)")
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
    if seen[field] > 1 { throw damaged("It has two values.") }
    isExternal = false
    if XMLRowReader.equal(type, fields.type(field)) { return }
    isExternal = type.elementsEqual("external".utf8) && externalSlots[entity].contains(slot)
    if !isExternal { throw damaged("Its type is another than the model's.") }
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
    if textCount + characters.count > options.largestText { throw tooLarge() }
    let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: 2 * (textCount + characters.count), alignment: 1)
    larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: text[..<textCount]))
    text.deallocate()
    text = larger
    try self.characters(characters)
  }

  private func tooLarge() -> StoreError { errors.limit("It has a text of more than \(options.largestText) bytes.") }

  func endAttribute() throws {
    guard case .attribute(let slot, let type) = fields.kind(field) else { return }
    if textCount > options.largestText { throw tooLarge() }
    let all = UnsafeMutableRawBufferPointer(rebasing: text[..<textCount])
    isExternal ? try setFile(slot, XMLText.trimmed(UnsafeRawBufferPointer(all))) : try set(slot, type, all)
  }

  private func setFile(_ slot: Int, _ text: UnsafeRawBufferPointer) throws {
    guard let id = ExternalDataName.id(text) else { throw damaged("The text names no file.") }
    values.set(slot, external: id)
  }

  @inline(__always) private func set(_ slot: Int, _ type: AttributeType, _ all: UnsafeMutableRawBufferPointer) throws {
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
      let isUUID = values.set(slot, mostBytes: 16) { BytesText.decodeUUID(XMLText.trimmed(text), into: $0) ? 16 : nil }
      if !isUUID { throw damaged("The text is no UUID.") }
    case .decimal:
      guard let value = NumberText.decimal(XMLText.trimmed(text)) else { throw damaged("The text is no decimal number that can be kept.") }
      values.set(slot, text: value.description)
    case .objectID: try set(slot, objectID: text)
    case .binaryData, .transformable, .composite, .undefined:
      let isBase64 = values.set(slot, mostBytes: text.count / 4 * 3) { XMLText.decodeBase64(all, into: $0) }
      if !isBase64 { throw damaged("The text is no base64.") }
    }
  }

  @inline(__always) private func number(_ value: Double?) throws -> Double {
    guard let value else { throw damaged("The text is no number, or one too large or too small to be kept.") }
    return value
  }

  @inline(__always) private func set(_ slot: Int, escaped text: UnsafeRawBufferPointer) throws {
    if !XMLText.mayHaveEscapes(text) { return values.set(slot, bytes: text) }
    let isText = values.set(slot, mostBytes: text.count) { XMLText.unescape(text, into: $0) }
    if !isText { throw damaged("An escape stands for half of a character.") }
  }

  private func set(_ slot: Int, objectID text: UnsafeRawBufferPointer) throws {
    // A store may have a name in which characters are escaped.
    try set(slot, escaped: text)
    guard ManagedObjectID(uriRepresentation: String(decoding: values.row.bytes(slot), as: UTF8.self)) != nil else {
      throw damaged("The text is no object's URI.")
    }
  }

  @inline(__always) private func whole(_ text: UnsafeRawBufferPointer, in range: ClosedRange<Int64>) throws -> Int64 {
    guard let value = NumberText.integer(text) ?? NumberText.integer(XMLText.trimmed(text)), range.contains(value) else {
      throw damaged("The text is no whole number that fits.")
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
      if seen[field] > 1 { throw damaged("It is there twice.") }
      let target = XMLText.trimmed(idrefs)
      if !target.isEmpty { values.set(slot, integer: try reference(target)) }
    case .targets(let place, let isOrdered):
      if seen[field] > 1 { try checkContinuation() }
      seen[field] += try forEachReference(idrefs) { target in
        if links[place].count == links[place].capacity { makeRoom(place) }
        links[place].append(SaveRequest.Link(source: key, target: target))
        if isOrdered { orderKeys[place].append(UsualOrder.key(linkCounts[place])) }
        linkCounts[place] += 1
      }
    case .stated(let place):
      if seen[field] > 1 { try checkContinuation() }
      seen[field] += try forEachReference(idrefs) { stated[place].add(source: key, target: $0) }
    }
  }

  /// A list may go on in another element when the one before was full. What was seen of a list is its elements and its targets.
  private func checkContinuation() throws {
    if seen[field] % (mostListed + 1) != 1 { throw damaged("It is there twice.") }
  }

  private func check(_ destination: UnsafeRawBufferPointer) throws {
    if String(decoding: destination, as: UTF8.self).uppercased().utf8.elementsEqual(fields.destination(field)) { return }
    throw damaged("Its destination is another than the model's.")
  }

  /// Calls `body` with the keys of a list, and tells how many there are.
  @inline(__always) private func forEachReference(_ idrefs: UnsafeRawBufferPointer, _ body: (Int64) -> Void) throws -> Int {
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

  /// The key that an id says.
  @inline(__always) private func reference(_ id: UnsafeRawBufferPointer) throws -> Int64 {
    guard id.first == UInt8(ascii: "z"), id.count > 1, id[1] != UInt8(ascii: "-"),
      let value = NumberText.integer(UnsafeRawBufferPointer(rebasing: id[1...])), TableLoader.keys.contains(value)
    else { throw damaged("An id is none of an object.") }
    return value
  }

  /// Makes room for as many links as there will be if the file goes on as it began: a list that grows by doubling takes twice the
  /// memory.
  private func makeRoom(_ place: Int) {
    let likely = Double(links[place].count) * min(1 / max(progress, 1e-6), 64) * 17 / 16
    if likely > 1024 { links[place].reserveCapacity(max(Int(likely), 2 * links[place].count)) }
  }
}
