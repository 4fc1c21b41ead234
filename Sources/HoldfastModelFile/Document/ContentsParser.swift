import CHoldfastLibXML2

/// Parses bytes accepted by ``ContentsScan`` with libxml2's streaming parser, and builds the tree of elements.
///
/// It avoids libxml2's pitfalls. It registers no handler that could declare or load anything, and passes small pieces. It stores errors
/// itself, because libxml2's own flag for a well-formed document stays set when a handler stops the parser. And it decodes an ampersand in
/// a value, which libxml2 returns as a character reference.
enum ContentsParser {
  private static let pieceByteCount = 1 << 16

  /// - Parameter text: The limits of a file with text and a document type, which the scan doesn't accept; nil for other files.
  static func parse(_ bytes: [UInt8], text: ModelFileOptions? = nil) throws(ModelFileError) -> ModelElement {
    // Initializes the library once per process, before several threads could do so at the same time.
    initialize
    let builder = TreeBuilder(text: text)
    let result = withExtendedLifetime(builder) {
      bytes.withUnsafeBytes { bytes in
        // Skips the byte order mark. The parser would treat it as text, because the encoding is set.
        run(bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? UnsafeRawBufferPointer(rebasing: bytes[3...]) : bytes, builder)
      }
    }
    try result.get()
    guard let root = builder.root, builder.isComplete else {
      throw ModelFileError(.malformed, reason: "The file is truncated.")
    }
    return root
  }

  private static let initialize: Void = xmlInitParser()

  private static func run(_ bytes: UnsafeRawBufferPointer, _ builder: TreeBuilder) -> Result<Void, ModelFileError> {
    var handlers = TreeBuilder.handlers(text: builder.limits != nil)
    let context = Unmanaged.passUnretained(builder).toOpaque()
    guard let parser = xmlCreatePushParserCtxt(&handlers, context, nil, 0, nil) else {
      return .failure(ModelFileError(.inputOutput, reason: "There isn't enough memory for a parser."))
    }
    defer { xmlFreeParserCtxt(parser) }
    xmlCtxtUseOptions(parser, Int32(XML_PARSE_NONET.rawValue))
    // Otherwise the parser guesses the encoding from the first four bytes.
    guard xmlSwitchEncoding(parser, XML_CHAR_ENCODING_UTF8) == 0 else {
      return .failure(ModelFileError(.inputOutput, reason: "The parser doesn't support UTF-8."))
    }
    builder.parser = parser
    defer { builder.parser = nil }
    var status: Int32 = 0
    for start in stride(from: 0, to: bytes.count, by: pieceByteCount) where status == 0 && builder.failure == nil {
      let piece = UnsafeRawBufferPointer(rebasing: bytes[start..<min(start + pieceByteCount, bytes.count)])
      status = xmlParseChunk(parser, piece.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(piece.count), 0)
    }
    if status == 0 && builder.failure == nil { status = xmlParseChunk(parser, nil, 0, 1) }
    if let failure = builder.failure { return .failure(failure) }
    guard status == 0, parser.pointee.wellFormed == 1, parser.pointee.nsWellFormed == 1, parser.pointee.errNo == 0 else {
      return .failure(ModelFileError(.malformed, line: builder.line, reason: "It isn't valid XML (libxml2 error \(parser.pointee.errNo))."))
    }
    return .success(())
  }
}

/// Builds a tree from libxml2's callbacks.
private final class TreeBuilder {
  /// Set while the parser runs.
  var parser: xmlParserCtxtPtr?
  private(set) var root: ModelElement?
  private(set) var failure: ModelFileError?
  /// The limits of a file with text; nil if the scan has checked the file.
  let limits: ModelFileOptions?
  private var elementCount = 0
  /// The open elements, the outermost first.
  private var open: [ModelElement] = []
  /// The names, by the address of the parser's unique copy of each.
  private var names: [UnsafePointer<xmlChar>: String] = [:]

  init(text limits: ModelFileOptions?) { self.limits = limits }

  var isComplete: Bool { open.isEmpty }

  var line: Int? { parser.map { Int(xmlSAX2GetLineNumber($0)) } }

  func begin(
    _ name: UnsafePointer<xmlChar>, hasNamespace: Bool, _ attributes: UnsafeMutablePointer<UnsafePointer<xmlChar>?>?, _ count: Int
  ) {
    guard failure == nil else { return }
    var element = ModelElement(text(name))
    element.line = line
    element.attributes.reserveCapacity(count)
    // Five pointers each: name, prefix, namespace, start and end of the value.
    for place in 0..<count {
      guard let attributes, let name = attributes[5 * place], let first = attributes[5 * place + 3], let end = attributes[5 * place + 4]
      else { return fail("An attribute has no value.") }
      guard attributes[5 * place + 1] == nil else { return fail("An attribute has a namespace. Model files have none.") }
      element.attributes.append(ModelElement.Attribute(text(name), TreeBuilder.value(first, end)))
    }
    if hasNamespace { return fail("An element has a namespace. Model files have none.") }
    open.append(element)
    elementCount += 1
    if let limits, open.count > limits.maximumDepth || elementCount > limits.maximumElementCount {
      fail("The file has more than \(limits.maximumElementCount) elements, or \(limits.maximumDepth) levels of them.", .tooLarge)
    }
  }

  /// Adds text to the innermost element.
  func add(_ text: UnsafePointer<xmlChar>, _ count: Int) {
    guard failure == nil, !open.isEmpty else { return }
    open[open.count - 1].text += String(decoding: UnsafeBufferPointer(start: text, count: count), as: UTF8.self)
  }

  func end() {
    guard failure == nil, let element = open.popLast() else { return }
    if open.isEmpty { root = element } else { open[open.count - 1].children.append(element) }
  }

  func fail(_ reason: String, _ code: ModelFileError.Code = .malformed, line: Int? = nil) {
    guard failure == nil else { return }
    failure = ModelFileError(
      code, line: line ?? self.line, element: open.last.map { "in element \($0.name.quoted)" }, reason: reason)
    if let parser { xmlStopParser(parser) }
  }

  private func text(_ name: UnsafePointer<xmlChar>) -> String {
    if let known = names[name] { return known }
    let text = String(cString: name)
    names[name] = text
    return text
  }

  /// The decoded value. The parser has resolved all references except an ampersand's, which it returns as another reference.
  private static func value(_ first: UnsafePointer<xmlChar>, _ end: UnsafePointer<xmlChar>) -> String {
    let bytes = UnsafeBufferPointer(start: first, count: max(0, end - first))
    guard bytes.contains(UInt8(ascii: "&")) else { return String(decoding: bytes, as: UTF8.self) }
    let ampersand: StaticString = "&#38;"
    var resolved: [UInt8] = []
    resolved.reserveCapacity(bytes.count)
    var place = 0
    while place < bytes.count {
      resolved.append(bytes[place])
      let isAmpersand = bytes.count - place >= 5 && (0..<5).allSatisfy { bytes[place + $0] == ampersand.utf8Start[$0] }
      place += isAmpersand ? 5 : 1
    }
    return String(decoding: resolved, as: UTF8.self)
  }
}

/// The builder of a pointer returned by libxml2. The parser's caller keeps it alive.
private func builder(_ context: UnsafeMutableRawPointer?) -> TreeBuilder? {
  context.map { Unmanaged<TreeBuilder>.fromOpaque($0).takeUnretainedValue() }
}

extension TreeBuilder {
  fileprivate static func handlers(text: Bool) -> xmlSAXHandler {
    var handlers = xmlSAXHandler()
    handlers.initialized = UInt32(XML_SAX2_MAGIC)
    handlers.startElementNs = { context, name, prefix, _, namespaceCount, _, count, _, attributes in
      guard let name else { return }
      builder(context)?.begin(name, hasNamespace: prefix != nil || namespaceCount > 0, attributes, Int(count))
    }
    handlers.endElementNs = { context, _, _, _ in builder(context)?.end() }
    handlers.serror = { context, error in
      guard let error, error.pointee.level.rawValue >= XML_ERR_ERROR.rawValue else { return }
      let message = error.pointee.message.map { String(decoding: String(cString: $0).utf8.prefix(200), as: UTF8.self) } ?? ""
      let reason = message.split(separator: "\n").first.map(String.init) ?? "error \(error.pointee.code)"
      builder(context)?.fail("It isn't valid XML: \(reason).", line: error.pointee.line > 0 ? Int(error.pointee.line) : nil)
    }
    if text {
      // Entities that a document type declares are refused where they are used.
      handlers.characters = { context, text, count in if let text { builder(context)?.add(text, Int(count)) } }
      handlers.cdataBlock = handlers.characters
    } else {
      handlers.internalSubset = { context, _, _, _ in builder(context)?.fail("The file has a document type.") }
    }
    // The scan refuses all of these. If the parser finds one nevertheless, parsing fails.
    handlers.reference = { context, _ in builder(context)?.fail("The file refers to an undeclared entity.") }
    handlers.processingInstruction = { context, _, _ in builder(context)?.fail("The file has a processing instruction.") }
    return handlers
  }
}
