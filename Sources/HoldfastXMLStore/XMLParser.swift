import CHoldfastLibXML2
import HoldfastAtomicStore
import HoldfastStore

/// Runs libxml2 over a file whose prolog has passed ``XMLProlog``, and checks the digest.
///
/// It uses libxml2 as follows:
///
/// - It uses only the streaming parser, which reads bytes from a callback and loads nothing else.
/// - It refuses everything that could declare or reference an entity.
/// - It records errors itself, because libxml2 reports a well-formed document even if a handler stopped the parser.
/// - It sets the encoding, so that libxml2 doesn't guess it.
/// - It checks that all bytes were consumed, because libxml2 treats a zero byte as the end.
/// - It doesn't use the push parser, which first searches for the end of each tag and takes a third longer.
struct XMLParser {
  /// The maximum nesting depth of elements: one less than the library's own limit.
  static let maximumNesting = 255

  private let document: XMLDocumentReader
  private let options: XMLStoreOptions

  init(_ document: XMLDocumentReader, options: XMLStoreOptions) {
    self.document = document
    self.options = options
  }

  private static let initialize: Void = xmlInitParser()

  /// Parses the file until the document needs no more of it.
  ///
  /// - Returns: The number of bytes that libxml2 didn't receive.
  @discardableResult func parse(_ reader: FileReader) throws -> Int {
    // Initializes libxml2 once per process, because several threads must not do so at the same time.
    XMLParser.initialize
    let feed = try XMLFeed(reader, document)
    var handlers = XMLParser.handlers()
    try withExtendedLifetime((document, feed)) {
      let (context, source) = (Unmanaged.passUnretained(document).toOpaque(), Unmanaged.passUnretained(feed).toOpaque())
      guard let parser = xmlCreateIOParserCtxt(&handlers, context, XMLFeed.read, nil, source, XML_CHAR_ENCODING_UTF8) else {
        throw noMemory()
      }
      defer { xmlFreeParserCtxt(parser) }
      xmlCtxtUseOptions(parser, Int32(XML_PARSE_NONET.rawValue))
      guard document.begin(parser) else { throw noMemory() }
      defer { document.end() }
      try parse(parser, feed)
    }
    return feed.skipped
  }

  private func noMemory() -> StoreError {
    StoreError(.inputOutput, operation: "open the store", path: document.errors.path, reason: "There isn't enough memory.")
  }

  private func parse(_ parser: xmlParserCtxtPtr, _ feed: XMLFeed) throws {
    let status = xmlParseDocument(parser)
    if let failure = feed.failure { throw failure }
    if document.isSatisfied { return }
    if let failure = document.failure { throw failure }
    let rest = parser.pointee.input.map { $0.pointee.end - $0.pointee.cur } ?? 0
    guard status == 0, parser.pointee.errNo == 0, parser.pointee.wellFormed == 1, parser.pointee.nsWellFormed == 1, document.isComplete,
      rest == 0, feed.isAtEnd
    else { throw malformed(parser) }
    try document.finish(feed.finding, allowsUnverified: options.wholeFile.allowsUnverified)
  }

  private func malformed(_ parser: xmlParserCtxtPtr) -> StoreError {
    let number = parser.pointee.errNo
    return document.damaged(
      number == 0 ? "The file is truncated, or data follows its end." : "The file isn't valid XML (libxml2 error \(number)).")
  }
}

/// Sends an event to the document reader behind libxml2's context pointer.
@inline(__always) private func tell(_ context: UnsafeMutableRawPointer?, _ body: (XMLDocumentReader) throws -> Void) {
  // `parse(_:)` keeps the reader alive.
  guard let context else { return }
  Unmanaged<XMLDocumentReader>.fromOpaque(context)._withUnsafeGuaranteedRef { reader in
    if reader.failure != nil { return }
    do { try body(reader) } catch { reader.fail(error) }
  }
}

extension XMLParser {
  fileprivate static func handlers() -> xmlSAXHandler {
    var handlers = xmlSAXHandler()
    handlers.initialized = UInt32(XML_SAX2_MAGIC)
    handlers.startElementNs = { context, name, prefix, _, namespaces, _, count, _, attributes in
      tell(context) { reader in
        guard let name, prefix == nil, namespaces == 0 else { throw reader.damaged("An element has a namespace.") }
        try reader.beginElement(name, XMLElementAttributes(attributes, Int(count)))
      }
    }
    handlers.endElementNs = { context, _, _, _ in tell(context) { try $0.endElement() } }
    let characters: charactersSAXFunc = { context, text, count in
      tell(context) { try $0.characters(UnsafeRawBufferPointer(start: text, count: Int(count))) }
    }
    // If both handlers are equal, the parser doesn't have to find out which text is ignorable.
    handlers.characters = characters
    handlers.ignorableWhitespace = characters
    handlers.cdataBlock = { context, _, _ in tell(context) { throw $0.damaged("The file has a CDATA section.") } }
    handlers.reference = { context, _ in tell(context) { throw $0.damaged("The file has an entity reference.") } }
    handlers.processingInstruction = { context, _, _ in tell(context) { throw $0.damaged("The file has a processing instruction.") } }
    handlers.entityDecl = { context, _, _, _, _, _ in tell(context) { throw $0.damaged("The file declares an entity.") } }
    handlers.elementDecl = { context, _, _, _ in tell(context) { throw $0.damaged("The file declares an element.") } }
    handlers.attributeDecl = { context, _, _, _, _, _, list in
      if let list { xmlFreeEnumeration(list) }
      tell(context) { throw $0.damaged("The file declares an attribute.") }
    }
    handlers.notationDecl = { context, _, _, _ in tell(context) { throw $0.damaged("The file declares a notation.") } }
    handlers.unparsedEntityDecl = { context, _, _, _, _ in tell(context) { throw $0.damaged("The file declares an entity.") } }
    handlers.serror = { context, error in
      guard let error, error.pointee.level.rawValue >= XML_ERR_ERROR.rawValue else { return }
      tell(context) { throw $0.damaged("The file isn't valid XML (libxml2 error \(error.pointee.code)).") }
    }
    return handlers
  }
}

/// The XML attributes of an element in libxml2's memory, valid during the element's event.
struct XMLElementAttributes {
  /// Five pointers per attribute: name, prefix, namespace, beginning and end of the value.
  private let pointers: UnsafeMutablePointer<UnsafePointer<xmlChar>?>?
  let count: Int

  init(_ pointers: UnsafeMutablePointer<UnsafePointer<xmlChar>?>?, _ count: Int) {
    self.pointers = pointers
    self.count = pointers == nil ? 0 : count
  }

  @inline(__always) func name(_ place: Int) -> UnsafePointer<xmlChar>? { pointers.flatMap { $0[5 * place] } }

  @inline(__always) func hasNamespace(_ place: Int) -> Bool { pointers.map { $0[5 * place + 1] != nil } ?? false }

  @inline(__always) func value(_ place: Int) -> UnsafeRawBufferPointer {
    guard let pointers, let first = pointers[5 * place + 3], let end = pointers[5 * place + 4], end >= first else {
      return UnsafeRawBufferPointer(start: nil, count: 0)
    }
    return UnsafeRawBufferPointer(start: first, count: end - first)
  }
}
