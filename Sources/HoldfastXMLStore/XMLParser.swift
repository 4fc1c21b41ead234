import CLibXML2
import HoldfastAtomicStore
import HoldfastStore

/// Drives libxml2 over a file whose prolog ``XMLProlog`` has passed, and checks that the file is as it was written.
///
/// libxml2's own pitfalls are met here: only its streaming parser is used, in pieces; it may load nothing; all that could declare or
/// refer to anything is refused; what it says about errors is kept by ourselves, since its own mark of a sound document stays set
/// when a handler stops it; and it does not guess the encoding.
struct XMLParser {
  private static let pieceByteCount = 1 << 16

  private let document: XMLDocumentReader
  private let options: XMLStore.Options

  init(_ document: XMLDocumentReader, options: XMLStore.Options) {
    self.document = document
    self.options = options
  }

  private static let initialize: Void = xmlInitParser()

  /// Parses a whole file, or as much of it as the document wants.
  func parse(_ reader: FileReader) throws {
    // Once per process, and before threads could do it at the same time.
    XMLParser.initialize
    var handlers = XMLParser.handlers()
    let context = Unmanaged.passUnretained(document).toOpaque()
    try withExtendedLifetime(document) {
      guard let parser = xmlCreatePushParserCtxt(&handlers, context, nil, 0, nil) else { throw noMemory() }
      defer { xmlFreeParserCtxt(parser) }
      xmlCtxtUseOptions(parser, Int32(XML_PARSE_NONET.rawValue))
      guard xmlSwitchEncoding(parser, XML_CHAR_ENCODING_UTF8) == 0, document.begin(parser) else { throw noMemory() }
      defer { document.end() }
      try parse(reader, parser)
    }
  }

  private func noMemory() -> StoreError {
    StoreError(.inputOutput, operation: "open the store", path: document.errors.path, reason: "There is no memory for a parser.")
  }

  private func parse(_ reader: FileReader, _ parser: xmlParserCtxtPtr) throws {
    var seal = TextSeal.Check(XMLFormat.seal, byteCount: Int(reader.byteCount))
    var offset = 0
    while let chunk = try reader.next() {
      var start = 0
      if offset == 0 {
        let beginning = UnsafeRawBufferPointer(rebasing: chunk.prefix(XMLProlog.mostBytes))
        (start, document.hasDocumentType) = try XMLProlog.check(beginning, document.errors)
      }
      seal.update(UnsafeRawBufferPointer(rebasing: chunk[..<start]))
      while start < chunk.count {
        let piece = UnsafeRawBufferPointer(rebasing: chunk[start..<min(start + XMLParser.pieceByteCount, chunk.count)])
        seal.update(piece)
        document.proceeded(to: Double(offset + start) / Double(reader.byteCount))
        let status = xmlParseChunk(parser, piece.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(piece.count), 0)
        if try stopped(parser, status) { return }
        start += piece.count
      }
      offset += chunk.count
    }
    if offset == 0 { throw document.errors.notAStore() }
    if try stopped(parser, xmlParseChunk(parser, nil, 0, 1)) { return }
    guard parser.pointee.wellFormed == 1, parser.pointee.nsWellFormed == 1, document.isComplete else { throw malformed(parser) }
    try document.finish(seal.finding, allowsUnverified: options.wholeFile.allowsUnverified)
  }

  /// Whether the document has enough.
  private func stopped(_ parser: xmlParserCtxtPtr, _ status: Int32) throws -> Bool {
    if document.isSatisfied { return true }
    if let failure = document.failure { throw failure }
    if status != 0 || parser.pointee.errNo != 0 { throw malformed(parser) }
    return false
  }

  private func malformed(_ parser: xmlParserCtxtPtr) -> StoreError {
    let number = parser.pointee.errNo
    return document.damaged(number == 0 ? "It ends too soon." : "It is not XML (libxml2's error \(number)).")
  }
}

/// Tells an event to the document behind the pointer that libxml2 hands back.
@inline(__always) private func tell(_ context: UnsafeMutableRawPointer?, _ body: (XMLDocumentReader) throws -> Void) {
  // The pointer is that of the reader which the parser keeps alive.
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
        guard let name, prefix == nil, namespaces == 0 else { throw reader.damaged("It has an element of a namespace.") }
        try reader.beginElement(name, XMLElementAttributes(attributes, Int(count)))
      }
    }
    handlers.endElementNs = { context, _, _, _ in tell(context) { try $0.endElement() } }
    let characters: charactersSAXFunc = { context, text, count in
      tell(context) { try $0.characters(UnsafeRawBufferPointer(start: text, count: Int(count))) }
    }
    // The same for both, so that the parser does not look which it is.
    handlers.characters = characters
    handlers.ignorableWhitespace = characters
    handlers.cdataBlock = { context, _, _ in tell(context) { throw $0.damaged("It has a literal section (CDATA).") } }
    handlers.reference = { context, _ in tell(context) { throw $0.damaged("It refers to an entity.") } }
    handlers.processingInstruction = { context, _, _ in tell(context) { throw $0.damaged("It has a processing instruction.") } }
    handlers.entityDecl = { context, _, _, _, _, _ in tell(context) { throw $0.damaged("It declares an entity.") } }
    handlers.elementDecl = { context, _, _, _ in tell(context) { throw $0.damaged("It declares an element.") } }
    handlers.attributeDecl = { context, _, _, _, _, _, list in
      if let list { xmlFreeEnumeration(list) }
      tell(context) { throw $0.damaged("It declares an attribute.") }
    }
    handlers.notationDecl = { context, _, _, _ in tell(context) { throw $0.damaged("It declares a notation.") } }
    handlers.unparsedEntityDecl = { context, _, _, _, _ in tell(context) { throw $0.damaged("It declares an entity.") } }
    handlers.serror = { context, error in
      guard let error, error.pointee.level.rawValue >= XML_ERR_ERROR.rawValue else { return }
      tell(context) { throw $0.damaged("It is not XML (libxml2's error \(error.pointee.code)).") }
    }
    return handlers
  }
}

/// The XML attributes of an element where libxml2 keeps them: valid while it tells of the element.
struct XMLElementAttributes {
  /// Five pointers each: name, prefix, namespace, where the value begins and where it ends.
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
