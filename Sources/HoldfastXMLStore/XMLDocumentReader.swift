import CHoldfastLibXML2
import HoldfastAtomicStore
import HoldfastPropertyList
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Stops the parser once the header is complete.
private struct Enough: Error {}

/// Handles the parser's events: checks that each one is allowed by the layout, and passes objects to the row reader.
final class XMLDocumentReader {
  let errors: XMLErrors
  /// The error that stopped the parser.
  @exclusivity(unchecked) private(set) var failure: (any Error)?
  /// The contents of `databaseInfo`.
  private(set) var metadata = XMLMetadata()
  /// Whether everything needed was read, although the document continues.
  @exclusivity(unchecked) private(set) var isSatisfied = false
  /// Whether the document has no UUID, and the reader wasn't given one to use instead.
  private(set) var lacksUUID = false
  /// Whether the document has the document type of a store.
  var hasDocumentType = false
  /// Whether the document has ended.
  var isComplete: Bool { place == .end }

  private let options: XMLStoreOptions
  private let madeUpUUID: String?
  private let rows: XMLRowReader?
  /// Receives the names, types and links of objects instead of ``rows``.
  private let survey: XMLSurvey?
  /// ``rows`` without reference counting, for calls made once per value. This object keeps it alive.
  private let uncountedRows: Unmanaged<XMLRowReader>?
  @exclusivity(unchecked) private var parser: xmlParserCtxtPtr?
  @exclusivity(unchecked) private var names: XMLNames?
  @exclusivity(unchecked) private var place = Place.start
  @exclusivity(unchecked) private var depth = 0
  /// The text of the current element before the objects, and the elements read so far.
  private var text: [UInt8] = []
  private var seen: [Place] = []
  private let list = XMLEcho()
  @exclusivity(unchecked) private(set) var hasBegun = false

  private enum Place {
    case start, database, info
    /// In elements of `databaseInfo`.
    case version, uuid, nextObjectID, metadata
    case object, attribute, relationship
    case end
  }

  /// - Parameters:
  ///   - rows: Receives the objects; nil to read only up to the objects, unless there is a survey.
  ///   - survey: Receives the objects' names, types and links. Defaults to none.
  ///   - madeUpUUID: The UUID for a document without one.
  init(rows: XMLRowReader?, survey: XMLSurvey? = nil, errors: XMLErrors, options: XMLStoreOptions, madeUpUUID: String?) {
    self.rows = rows
    self.survey = survey
    self.errors = errors
    self.options = options
    self.madeUpUUID = madeUpUUID
    uncountedRows = rows.map { Unmanaged.passUnretained($0) }
  }

  // MARK: The parser

  /// - Returns: False if there isn't enough memory.
  func begin(_ parser: xmlParserCtxtPtr) -> Bool {
    self.parser = parser
    names = XMLNames(parser)
    return names != nil
  }

  func end() { (parser, names) = (nil, nil) }

  /// The number of lines that libxml2 didn't receive.
  @exclusivity(unchecked) private var skippedLines = 0

  /// The row reader, if it receives the objects.
  var objectReader: XMLRowReader? { survey == nil ? rows : nil }

  /// Whether libxml2 is between two objects, and has at most some bytes left.
  func isBetweenObjects(atMost rest: Int) -> Bool {
    guard place == .database, hasBegun, failure == nil, let input = parser?.pointee.input else { return false }
    return input.pointee.end - input.pointee.cur <= rest
  }

  /// Counts the lines in bytes that libxml2 doesn't receive.
  func skip(_ bytes: UnsafeRawBufferPointer) { skippedLines += WrittenObjects.lineCount(bytes) }

  /// Sets the share of the file that was read, from 0 to 1.
  func proceeded(to progress: Double) { rows?.progress = progress }

  func fail(_ error: any Error) {
    failure = error
    if let parser { xmlStopParser(parser) }
  }

  private func stop() throws {
    isSatisfied = true
    throw Enough()
  }

  /// - Parameter linesBehind: The number of lines that libxml2 has counted behind the problem. Defaults to 0.
  func damaged(_ what: String, linesBehind: Int = 0) -> StoreError {
    if place == .start { return errors.notAStore(what) }
    let line = parser.map { " The problem is on or before line \(Int(xmlSAX2GetLineNumber($0)) + skippedLines - linesBehind)." } ?? ""
    if place == .object || place == .attribute || place == .relationship, let rows { return rows.damaged(what, line) }
    return errors.damaged(what, line)
  }

  /// Calls the reader of the objects.
  @inline(__always) private func withRows(_ body: (XMLRowReader) throws -> Void) throws {
    guard let uncountedRows else { throw damaged("Unexpected object.") }
    try uncountedRows._withUnsafeGuaranteedRef { try body($0) }
  }

  // MARK: Elements

  func beginElement(_ element: UnsafePointer<xmlChar>, _ attributes: XMLElementAttributes) throws {
    guard let names else { return }
    depth += 1
    switch place {
    case .object:
      if element == names.attribute {
        place = .attribute
        try beginAttribute(attributes, names)
      } else if element == names.relationship {
        place = .relationship
        try relationship(attributes, names)
      } else {
        throw unexpected(element)
      }
    case .database where element == names.object:
      if !hasBegun { try beginObjects() }
      place = .object
      try beginObject(attributes, names)
    case .metadata: try beginListElement(element)
    case .database where element == names.databaseInfo: try enter(.info, element)
    case .info where element == names.version: try enter(.version, element)
    case .info where element == names.uuid: try enter(.uuid, element)
    case .info where element == names.nextObjectID: try enter(.nextObjectID, element)
    case .info where element == names.metadata: try enter(.metadata, element)
    case .start where element == names.database: place = .database
    case .start: throw errors.notAStore()
    default: throw unexpected(element)
    }
  }

  private func unexpected(_ element: UnsafePointer<xmlChar>) -> StoreError {
    damaged("Unexpected element \"\(XMLDocumentReader.name(element, most: 40))\".")
  }

  private static func name(_ element: UnsafePointer<xmlChar>, most: Int) -> String {
    String(String(cString: element).prefix(most))
  }

  private func enter(_ next: Place, _ element: UnsafePointer<xmlChar>) throws {
    if hasBegun { throw damaged("The element databaseInfo is after the objects.") }
    if seen.contains(next) { throw damaged("The element \"\(XMLDocumentReader.name(element, most: 40))\" appears twice.") }
    seen.append(next)
    place = next
    text = []
  }

  private func beginListElement(_ element: UnsafePointer<xmlChar>) throws {
    let deepest = min(options.maximumNesting, XMLParser.maximumNesting)
    if depth > deepest { throw errors.limit("Elements are nested more than \(deepest) levels deep.") }
    if depth == 4, !list.isEmpty { throw damaged("The metadata contains more than one property list.") }
    list.begin(XMLDocumentReader.name(element, most: 40))
  }

  func endElement() throws {
    depth -= 1
    switch place {
    case .attribute:
      place = .object
      if survey == nil { try withRows { try $0.endAttribute() } }
    case .relationship: place = .object
    case .object:
      place = .database
      if survey == nil { try withRows { try $0.endObject() } }
    case .metadata:
      if depth >= 3 { return list.end() }
      place = .info
      if !list.isEmpty { try takeMetadata() }
    case .version, .uuid, .nextObjectID:
      try takeInfo(place, trimmed(text))
      place = .info
    case .info:
      place = .database
      if rows == nil, survey == nil, !metadata.header.storeUUID.isEmpty { try stop() }
    case .database:
      if !hasBegun {
        // A document with an empty element "database" isn't necessarily a store.
        if !hasDocumentType && !seen.contains(.info) { throw errors.notAStore() }
        try beginObjects()
      }
      if survey == nil { try withRows { try $0.finish() } }
      place = .end
    case .start, .end: break
    }
  }

  // MARK: Texts

  func characters(_ characters: UnsafeRawBufferPointer) throws {
    switch place {
    case .attribute: if survey == nil { try withRows { try $0.characters(characters) } }
    case .metadata where depth > 3: list.characters(characters)
    case .version, .uuid, .nextObjectID:
      text += characters
      if text.count > options.maximumNameByteCount { throw errors.limit("An element has more than \(options.maximumNameByteCount) bytes.") }
    default:
      guard let first = characters.firstIndex(where: { !XMLText.isSpace($0) }) else { return }
      throw damaged("Unexpected text.", linesBehind: countedLines(UnsafeRawBufferPointer(rebasing: characters[first...])))
    }
  }

  /// The number of lines in the rest of a text that libxml2 passes on in its own buffer.
  ///
  /// Where such a text ends depends on the bytes that libxml2 has received. Other texts are copies, in which line ends are replaced.
  private func countedLines(_ rest: UnsafeRawBufferPointer) -> Int {
    guard let input = parser?.pointee.input, let base = input.pointee.base, let end = input.pointee.end, let start = rest.baseAddress,
      start >= UnsafeRawPointer(base), start < UnsafeRawPointer(end)
    else { return 0 }
    return WrittenObjects.lineCount(rest)
  }

  private func trimmed(_ bytes: [UInt8]) -> String {
    bytes.withUnsafeBytes { String(decoding: XMLText.trimmed($0), as: UTF8.self) }
  }

  // MARK: The header

  private func takeInfo(_ place: Place, _ text: String) throws {
    switch place {
    case .version:
      guard let version = Int64(text) else { throw damaged("The format version isn't a number.") }
      if version != XMLFormat.version { throw errors.newerFormat("the unknown format version \(version)") }
    case .uuid:
      guard let uuid = UUID(uuidString: text) else { throw damaged("The store's UUID is invalid.") }
      metadata.setUUID(uuid.uuidString)
    case .nextObjectID:
      guard let last = Int64(text), last >= 0, TableLoader.nextKeys.contains(ObjectKey(last &+ 1)) else {
        throw damaged("The number in nextObjectID is out of range.")
      }
      metadata.setNextObjectID(ObjectKey(last))
    default: break
    }
  }

  private func takeMetadata() throws {
    let limits = PropertyListLimits(bytes: .max, depth: options.maximumNesting, objects: options.maximumMemberCount)
    do throws(XMLMetadata.Fault) {
      try metadata.setList(list.bytes, limits)
    } catch {
      if (error.cause as? PropertyListError)?.code == .tooLarge {
        throw errors.limit("The metadata has more than \(options.maximumMemberCount) values.")
      }
      throw error.isNewer ? errors.newerFormat(error.reason) : errors.damaged(error.reason, " Location: metadata.", error.cause)
    }
  }

  private func beginObjects() throws {
    hasBegun = true
    if survey != nil { return }
    if metadata.header.storeUUID.isEmpty {
      guard let madeUpUUID else {
        lacksUUID = true
        return try stop()
      }
      metadata.setUUID(madeUpUUID)
    }
    guard let rows else { return try stop() }
    try rows.begin(metadata)
  }

  // MARK: Objects

  @inline(__always) private func checked(_ value: UnsafeRawBufferPointer) throws -> UnsafeRawBufferPointer {
    if value.count > options.maximumNameByteCount { throw errors.limit("A name has more than \(options.maximumNameByteCount) bytes.") }
    return value
  }

  private static func text(_ value: UnsafeRawBufferPointer) -> String { String(decoding: value, as: UTF8.self) }

  @inline(__always) private func unknownAttribute() -> StoreError { damaged("An element has an unknown attribute.") }

  private func beginObject(_ attributes: XMLElementAttributes, _ names: XMLNames) throws {
    var type: UnsafeRawBufferPointer?, id: UnsafeRawBufferPointer?
    for place in 0..<attributes.count {
      let name = attributes.name(place)
      if attributes.hasNamespace(place) { throw unknownAttribute() }
      if name == names.type {
        type = try checked(attributes.value(place))
      } else if name == names.id {
        id = try checked(attributes.value(place))
      } else {
        throw unknownAttribute()
      }
    }
    guard let type, let id else { throw damaged("An object has no type or no id.") }
    if let survey { return try survey.beginObject(type: Self.text(type), id: Self.text(id)) }
    try withRows { try $0.beginObject(type: type, id: id) }
  }

  private func beginAttribute(_ attributes: XMLElementAttributes, _ names: XMLNames) throws {
    var name: UnsafeRawBufferPointer?, type: UnsafeRawBufferPointer?
    for place in 0..<attributes.count {
      let found = attributes.name(place)
      if attributes.hasNamespace(place) { throw unknownAttribute() }
      if found == names.name {
        name = try checked(attributes.value(place))
      } else if found == names.type {
        type = try checked(attributes.value(place))
      } else {
        throw unknownAttribute()
      }
    }
    guard let name, let type else { throw damaged("An attribute has no name or no type.") }
    if let survey { return try survey.attribute(name: Self.text(name), type: Self.text(type)) }
    try withRows { try $0.beginAttribute(name: name, type: type) }
  }

  private func relationship(_ attributes: XMLElementAttributes, _ names: XMLNames) throws {
    var name: UnsafeRawBufferPointer?, destination: UnsafeRawBufferPointer?, type: UnsafeRawBufferPointer?
    var idrefs = UnsafeRawBufferPointer(start: nil, count: 0)
    for place in 0..<attributes.count {
      let found = attributes.name(place)
      if attributes.hasNamespace(place) { throw unknownAttribute() }
      if found == names.name {
        name = try checked(attributes.value(place))
      } else if found == names.destination {
        destination = try checked(attributes.value(place))
      } else if found == names.idrefs {
        idrefs = attributes.value(place)
        if idrefs.count > options.maximumAttributeValueByteCount {
          throw errors.limit("A list of object IDs has more than \(options.maximumAttributeValueByteCount) bytes.")
        }
      } else if found == names.type {
        type = try checked(attributes.value(place))
      } else {
        throw unknownAttribute()
      }
    }
    guard let name, let destination, let type else { throw damaged("A relationship has no name, type or destination.") }
    if let survey {
      return try survey.relationship(
        name: Self.text(name), type: Self.text(type), destination: Self.text(destination), idrefs: Self.text(idrefs))
    }
    try withRows { try $0.relationship(name: name, destination: destination, idrefs: idrefs) }
  }

  // MARK: The end

  /// Checks the digest at the end of the file. It must be there exactly if the metadata contains its mark.
  ///
  /// Without the right digest, another program may have changed lists without their order keys.
  func finish(_ seal: TextSeal.Finding, allowsUnverified: Bool) throws {
    if metadata.isSealed ? seal == .right : seal == .none {
      if let mismatch = rows?.lengthMismatch { throw mismatch }
      return
    }
    if !allowsUnverified { throw errors.unverified() }
    rows?.noteUnverified()
  }
}
