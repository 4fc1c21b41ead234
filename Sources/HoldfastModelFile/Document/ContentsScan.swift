/// Checks a file's bytes before the XML parser reads them.
///
/// It refuses what model files don't contain and the parser handles badly: encodings other than UTF-8, document types, processing
/// instructions, text, and unlimited sizes. It finds only tags, comments and values. The parser detects other malformed XML. Mapping models
/// have text and a document type without declarations.
struct ContentsScan {
  private let bytes: UnsafeRawBufferPointer
  private let options: ModelFileOptions
  /// Whether text and a document type may occur, as in mapping models.
  private let hasText: Bool
  private var place = 0
  private var line = 1
  private var depth = 0
  private var elementCount = 0
  private var attributeCount = 0

  /// - Throws: `malformed` and `tooLarge`, with the line.
  static func check(_ bytes: [UInt8], _ options: ModelFileOptions, hasText: Bool = false) throws(ModelFileError) {
    try checkText(bytes, options)
    let result = bytes.withUnsafeBytes { bytes -> Result<Void, ModelFileError> in
      var scan = ContentsScan(bytes: bytes, options: options, hasText: hasText)
      return Result { () throws(ModelFileError) in try scan.run() }
    }
    try result.get()
  }

  /// Checks the size and the characters.
  private static func checkText(_ bytes: [UInt8], _ options: ModelFileOptions) throws(ModelFileError) {
    guard bytes.count <= options.maximumByteCount else {
      throw ModelFileError(.tooLarge, reason: "The file has \(bytes.count) bytes; the maximum is \(options.maximumByteCount).")
    }
    if bytes.starts(with: [0xFE, 0xFF]) || bytes.starts(with: [0xFF, 0xFE]) {
      throw ModelFileError(.malformed, line: 1, reason: "The file is UTF-16. Save it as UTF-8.")
    }
    guard String(validating: bytes, as: UTF8.self) != nil else {
      throw ModelFileError(.malformed, line: lineOfFault(bytes), reason: "The file isn't valid UTF-8.")
    }
    // The parser would treat a zero byte as a sign of another encoding.
    if let place = bytes.firstIndex(where: { $0 < 0x20 && $0 != 0x09 && $0 != 0x0A && $0 != 0x0D }) {
      let line = bytes[..<place].reduce(1) { $1 == UInt8(ascii: "\n") ? $0 + 1 : $0 }
      throw ModelFileError(.malformed, line: line, reason: "The file contains the character \(bytes[place]), which XML doesn't allow.")
    }
  }

  private init(bytes: UnsafeRawBufferPointer, options: ModelFileOptions, hasText: Bool) {
    self.bytes = bytes
    self.options = options
    self.hasText = hasText
  }

  /// The line of the first invalid UTF-8 sequence.
  private static func lineOfFault(_ bytes: [UInt8]) -> Int {
    var line = 1
    var decoder = UTF8()
    var iterator = bytes.makeIterator()
    while case .scalarValue(let scalar) = decoder.decode(&iterator) { if scalar == "\n" { line += 1 } }
    return line
  }

  private mutating func run() throws(ModelFileError) {
    if starts(with: "\u{FEFF}") { place += 3 }
    if starts(with: "<?xml") { try declaration() }
    while place < bytes.count {
      switch bytes[place] {
      case UInt8(ascii: "<"): try markup()
      case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"), UInt8(ascii: "\n"): step()
      default:
        if !hasText { throw fault("The file has text between elements. Model files have only elements and attributes.") }
        step()
      }
    }
    if depth > 0 { throw fault("The file is truncated: \(depth) \(depth == 1 ? "element is" : "elements are") still open.") }
    if elementCount == 0 && !hasText { throw ModelFileError(.notAModel, reason: "The file contains no XML.") }
  }

  private mutating func markup() throws(ModelFileError) {
    if starts(with: "<!--") {
      place += 4
      try skip(through: "-->", "a comment")
    } else if hasText && starts(with: "<![CDATA[") {
      try skip(through: "]]>", "literal text")
    } else if hasText && starts(with: "<!DOCTYPE") {
      try documentType()
    } else if starts(with: "<!DOCTYPE") {
      throw fault("The file has a document type, which can exhaust a reader's memory. Remove it; model files need none.")
    } else if starts(with: "<!") {
      throw fault("The file has a declaration or literal text. Model files have only elements and attributes.")
    } else if starts(with: "<?") {
      throw fault("The file has a processing instruction. Remove it; model files have none.")
    } else if starts(with: "</") {
      depth -= 1
      if depth < 0 { throw fault("An end tag has no start tag.") }
      try skip(through: ">", "the end of an element")
    } else {
      try startTag()
    }
  }

  private mutating func documentType() throws(ModelFileError) {
    let first = line
    while place < bytes.count {
      switch bytes[place] {
      case UInt8(ascii: ">"): return step()
      case UInt8(ascii: "["): throw fault("The document type has declarations, which can exhaust a reader's memory. Remove them.")
      case UInt8(ascii: "\""), UInt8(ascii: "'"): try value()
      default: step()
      }
    }
    throw fault("The file is truncated, in a document type that began in line \(first).")
  }

  private mutating func startTag() throws(ModelFileError) {
    elementCount += 1
    guard elementCount <= options.maximumElementCount else { throw beyond("elements", options.maximumElementCount) }
    depth += 1
    guard depth <= options.maximumDepth else { throw beyond("levels of elements", options.maximumDepth) }
    let first = line
    var ownCount = 0
    step()
    while place < bytes.count {
      switch bytes[place] {
      case UInt8(ascii: ">"):
        if bytes[place - 1] == UInt8(ascii: "/") { depth -= 1 }
        return step()
      case UInt8(ascii: "\""), UInt8(ascii: "'"):
        ownCount += 1
        attributeCount += 1
        guard ownCount <= options.maximumAttributesPerElement else {
          throw beyond("attributes of one element", options.maximumAttributesPerElement)
        }
        guard attributeCount <= options.maximumAttributeCount else { throw beyond("attributes", options.maximumAttributeCount) }
        try value()
      case UInt8(ascii: "<"): throw fault("A tag begins inside another tag, which began in line \(first).")
      default: step()
      }
    }
    throw fault("The file is truncated, in a tag that began in line \(first).")
  }

  /// Skips a value, including its quotation marks.
  private mutating func value() throws(ModelFileError) {
    let quotationMark = bytes[place], first = line, start = place
    step()
    while place < bytes.count {
      if bytes[place] == quotationMark { return step() }
      if bytes[place] == UInt8(ascii: "<") { throw fault("A value that began in line \(first) contains \"<\". Write \"&lt;\" instead.") }
      guard place - start <= options.maximumValueByteCount else { throw beyond("bytes of one value", options.maximumValueByteCount) }
      step()
    }
    throw fault("The file is truncated, in a value that began in line \(first).")
  }

  /// Checks the encoding in the XML declaration.
  private mutating func declaration() throws(ModelFileError) {
    let start = place
    try skip(through: "?>", "the XML declaration")
    let words = String(decoding: bytes[start..<place], as: UTF8.self)
    guard let encoding = words.firstRange(of: "encoding") else { return }
    let quoted = words[encoding.upperBound...].drop { $0 == " " || $0 == "=" || $0 == "\t" || $0 == "\n" }
    let name = quoted.dropFirst().prefix { $0 != "\"" && $0 != "'" }
    guard name.lowercased() == "utf-8" else {
      throw fault("The file's declared encoding is \(String(name).quoted). Save it as UTF-8.")
    }
  }

  private mutating func skip(through end: StaticString, _ what: String) throws(ModelFileError) {
    let first = line
    while place < bytes.count {
      if starts(with: end) {
        place += end.utf8CodeUnitCount
        return
      }
      step()
    }
    throw fault("The file is truncated, in \(what) that began in line \(first).")
  }

  private func starts(with text: StaticString) -> Bool {
    let count = text.utf8CodeUnitCount
    guard bytes.count - place >= count else { return false }
    return (0..<count).allSatisfy { bytes[place + $0] == text.utf8Start[$0] }
  }

  private mutating func step() {
    if bytes[place] == UInt8(ascii: "\n") { line += 1 }
    place += 1
  }

  private func fault(_ reason: String) -> ModelFileError { ModelFileError(.malformed, line: line, reason: reason) }

  private func beyond(_ what: String, _ limit: Int) -> ModelFileError {
    ModelFileError(.tooLarge, line: line, reason: "The file has more than \(limit) \(what). Raise the limit in the options if it is valid.")
  }
}
