import CLibXML2
import HoldfastAtomicStore
import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Stops a parser that has gone far enough.
private struct Enough: Error {}

/// Follows the events of a parser through a document, checks that each is what the layout has there, and hands objects to what makes
/// rows of them.
final class XMLDocumentReader {
  let errors: XMLErrors
  /// Why the parser was stopped.
  @exclusivity(unchecked) private(set) var failure: (any Error)?
  /// What the document says of its store.
  private(set) var metadata = XMLMetadata()
  /// Whether all that was wanted is known, although the document goes on.
  @exclusivity(unchecked) private(set) var isSatisfied = false
  /// Whether the document turned out to say no UUID, and none was made up for it.
  private(set) var lacksUUID = false
  /// Whether the document's type is that of a store.
  var hasDocumentType = false
  /// Whether the parser has reported anything since it got bytes last.
  @exclusivity(unchecked) var hasEvent = false
  /// How many bytes at its beginning the parser does not see.
  var hiddenByteCount = 0
  /// Whether the document has come to its end.
  var isComplete: Bool { place == .end }

  private let options: XMLStore.Options
  private let madeUpUUID: String?
  private let rows: XMLRowReader?
  /// ``rows``, which lives as long as this: for calls that come once for each value, without counting references.
  private let uncountedRows: Unmanaged<XMLRowReader>?
  @exclusivity(unchecked) private var parser: xmlParserCtxtPtr?
  @exclusivity(unchecked) private var names: XMLNames?
  @exclusivity(unchecked) private var place = Place.start
  @exclusivity(unchecked) private var depth = 0
  /// The texts of elements before the objects, and which of them have come.
  private var text: [UInt8] = []
  private var seen: Set<Place> = []
  private let list = XMLEcho()
  @exclusivity(unchecked) private var hasBegun = false
  /// Finds runs of objects, for the first save; nil when there will be none.
  let runs: RunFinder?

  private enum Place {
    case start, database, info
    /// In elements of the databaseInfo.
    case version, uuid, nextObjectID, metadata
    case object, attribute, relationship
    case end
  }

  /// - Parameters:
  ///   - rows: nil when only what stands before the objects is wanted.
  ///   - madeUpUUID: for a document that has none.
  init(rows: XMLRowReader?, errors: XMLErrors, options: XMLStore.Options, madeUpUUID: String?) {
    self.rows = rows
    self.errors = errors
    self.options = options
    self.madeUpUUID = madeUpUUID
    uncountedRows = rows.map { Unmanaged.passUnretained($0) }
    // Nobody saves what is read-only.
    runs = options.wholeFile.file.isReadOnly ? nil : rows?.runs()
  }

  // MARK: The parser

  /// - Returns: false when there is no memory.
  func begin(_ parser: xmlParserCtxtPtr) -> Bool {
    self.parser = parser
    names = XMLNames(parser)
    return names != nil
  }

  func end() { (parser, names) = (nil, nil) }

  /// Is told how much of the file was handed over, from 0 to 1.
  func proceeded(to progress: Double) { rows?.progress = progress }

  func fail(_ error: any Error) {
    failure = error
    if let parser { xmlStopParser(parser) }
  }

  private func stop() throws {
    isSatisfied = true
    throw Enough()
  }

  func damaged(_ what: String) -> StoreError {
    if place == .start { return errors.notAStore(what) }
    let line = parser.map { " That is before the end of line \(xmlSAX2GetLineNumber($0))." } ?? ""
    if place == .object || place == .attribute || place == .relationship, let rows { return rows.damaged(what, line) }
    return errors.damaged(what, line)
  }

  /// Calls what reads objects.
  @inline(__always) private func withRows(_ body: (XMLRowReader) throws -> Void) throws {
    guard let uncountedRows else { throw damaged("There is an object where none may be.") }
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
    damaged("There is an element \"\(XMLDocumentReader.name(element, most: 40))\" where the layout has none.")
  }

  private static func name(_ element: UnsafePointer<xmlChar>, most: Int) -> String {
    String(String(cString: element).prefix(most))
  }

  private func enter(_ next: Place, _ element: UnsafePointer<xmlChar>) throws {
    if hasBegun { throw damaged("The element databaseInfo has to stand before the objects.") }
    guard seen.insert(next).inserted else { throw damaged("It has two elements \"\(XMLDocumentReader.name(element, most: 40))\".") }
    place = next
    text = []
  }

  private func beginListElement(_ element: UnsafePointer<xmlChar>) throws {
    let deepest = min(options.deepestNesting, XMLParser.deepestNesting)
    if depth > deepest { throw errors.limit("It has elements within more than \(deepest) others.") }
    if depth == 4, !list.isEmpty { throw damaged("The metadata are more than one property list.") }
    list.begin(XMLDocumentReader.name(element, most: 40))
  }

  func endElement() throws {
    depth -= 1
    switch place {
    case .attribute:
      place = .object
      try withRows { try $0.endAttribute() }
    case .relationship: place = .object
    case .object:
      place = .database
      try withRows { try $0.endObject() }
    case .metadata:
      if depth >= 3 { return list.end() }
      place = .info
      if !list.isEmpty { try takeMetadata() }
    case .version, .uuid, .nextObjectID:
      try takeInfo(place, trimmed(text))
      place = .info
    case .info:
      place = .database
      if rows == nil, !metadata.header.storeUUID.isEmpty { try stop() }
    case .database:
      if !hasBegun {
        // An empty element of that name may be anything.
        if !hasDocumentType && !seen.contains(.info) { throw errors.notAStore() }
        try beginObjects()
      }
      try withRows { try $0.finish() }
      place = .end
    case .start, .end: break
    }
  }

  // MARK: Texts

  func characters(_ characters: UnsafeRawBufferPointer) throws {
    switch place {
    case .attribute: try withRows { try $0.characters(characters) }
    case .metadata where depth > 3: list.characters(characters)
    case .version, .uuid, .nextObjectID:
      text += characters
      if text.count > options.longestName { throw errors.limit("It has an element of more than \(options.longestName) bytes.") }
    default:
      if !characters.allSatisfy(XMLText.isSpace) { throw damaged("There is text where the layout has none.") }
    }
  }

  private func trimmed(_ bytes: [UInt8]) -> String {
    bytes.withUnsafeBytes { String(decoding: XMLText.trimmed($0), as: UTF8.self) }
  }

  // MARK: What stands before the objects

  private func takeInfo(_ place: Place, _ text: String) throws {
    switch place {
    case .version:
      guard let version = Int64(text) else { throw damaged("The version is no number.") }
      if version != XMLFormat.version { throw errors.newerFormat("version \(version) of the layout") }
    case .uuid:
      guard let uuid = UUID(uuidString: text) else { throw damaged("The UUID is no UUID.") }
      metadata.setUUID(uuid.uuidString)
    case .nextObjectID:
      guard let last = Int64(text), last >= 0, TableLoader.nextKeys.contains(last &+ 1) else {
        throw damaged("The number of the last object is none that an object can have.")
      }
      metadata.setNextObjectID(last)
    default: break
    }
  }

  private func takeMetadata() throws {
    let limits = PropertyListLimits(bytes: .max, depth: options.deepestNesting, objects: options.mostMembers)
    do throws(XMLMetadata.Fault) {
      try metadata.setList(list.bytes, limits)
    } catch {
      if (error.cause as? PropertyListError)?.code == .tooLarge {
        throw errors.limit("It has metadata of more than \(options.mostMembers) values.")
      }
      throw error.isNewer ? errors.newerFormat(error.reason) : errors.damaged(error.reason, "That is in the metadata.", error.cause)
    }
  }

  private func beginObjects() throws {
    hasBegun = true
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
    if value.count > options.longestName { throw errors.limit("It has a name of more than \(options.longestName) bytes.") }
    return value
  }

  @inline(__always) private func unknownAttribute() -> StoreError { damaged("An element has an attribute that the layout has not.") }

  private func beginObject(_ attributes: XMLElementAttributes, _ names: XMLNames) throws {
    var type: UnsafeRawBufferPointer?, id: UnsafeRawBufferPointer?
    for place in 0..<attributes.count {
      let name = attributes.name(place)
      if name == names.type {
        type = try checked(attributes.value(place))
      } else if name == names.id, !attributes.hasNamespace(place) {
        id = try checked(attributes.value(place))
      } else {
        throw unknownAttribute()
      }
    }
    guard let type, let id else { throw damaged("An object has no type or no id.") }
    try withRows {
      try $0.beginObject(type: type, id: id)
      confirm($0.entity)
    }
  }

  /// Tells where an object's tag ends: the parser is at its bracket.
  @inline(__always) private func confirm(_ entity: Int) {
    guard let runs, let parser, runs.awaited < .max else { return }
    let mark = Int64(hiddenByteCount + xmlByteConsumed(parser))
    if mark >= runs.awaited { runs.confirm(entity, at: mark) }
  }

  private func beginAttribute(_ attributes: XMLElementAttributes, _ names: XMLNames) throws {
    var name: UnsafeRawBufferPointer?, type: UnsafeRawBufferPointer?
    for place in 0..<attributes.count {
      let found = attributes.name(place)
      if found == names.name {
        name = try checked(attributes.value(place))
      } else if found == names.type {
        type = try checked(attributes.value(place))
      } else {
        throw unknownAttribute()
      }
    }
    guard let name, let type else { throw damaged("An attribute has no name or no type.") }
    try withRows { try $0.beginAttribute(name: name, type: type) }
  }

  private func relationship(_ attributes: XMLElementAttributes, _ names: XMLNames) throws {
    var name: UnsafeRawBufferPointer?, destination: UnsafeRawBufferPointer?, type: UnsafeRawBufferPointer?
    var idrefs = UnsafeRawBufferPointer(start: nil, count: 0)
    for place in 0..<attributes.count {
      let found = attributes.name(place)
      if found == names.name {
        name = try checked(attributes.value(place))
      } else if found == names.destination {
        destination = try checked(attributes.value(place))
      } else if found == names.idrefs {
        idrefs = attributes.value(place)
        if idrefs.count > options.longestAttributeValue {
          throw errors.limit("It has a list of objects of more than \(options.longestAttributeValue) bytes.")
        }
      } else if found == names.type {
        type = try checked(attributes.value(place))
      } else {
        throw unknownAttribute()
      }
    }
    guard let name, let destination, type != nil else { throw damaged("A relationship has no name, no type or no destination.") }
    try withRows { try $0.relationship(name: name, destination: destination, idrefs: idrefs) }
  }

  // MARK: The end

  /// Compares the mark in the metadata with the end of the file.
  func finish(_ seal: TextSeal.Finding, allowsUnverified: Bool) throws {
    if metadata.isSealed && seal == .right {
      if let runs { rows?.take(runs) }
    } else if metadata.isSealed || seal != .none, !allowsUnverified {
      throw errors.unverified()
    }
  }
}
