/// Goes over a file's bytes before the XML parser sees them, and refuses what no model file holds and what the parser is known to be
/// weak at: other encodings than UTF-8, document types with their entities, processing instructions, text, and sizes without bound.
///
/// It finds tags, comments and values and knows no more of XML; what passes may still be malformed, which the parser finds.
struct ContentsScan {
  private let bytes: UnsafeRawBufferPointer
  private let options: ModelFileOptions
  private var place = 0
  private var line = 1
  private var depth = 0
  private var elementCount = 0
  private var attributeCount = 0

  /// - Throws: `malformed` and `tooLarge`, with the line.
  static func check(_ bytes: [UInt8], _ options: ModelFileOptions) throws(ModelFileError) {
    guard bytes.count <= options.maximumByteCount else {
      throw ModelFileError(.tooLarge, reason: "It has \(bytes.count) bytes; \(options.maximumByteCount) are allowed.")
    }
    if bytes.starts(with: [0xFE, 0xFF]) || bytes.starts(with: [0xFF, 0xFE]) {
      throw ModelFileError(.malformed, line: 1, reason: "It is UTF-16; a model file is UTF-8.")
    }
    guard String(validating: bytes, as: UTF8.self) != nil else {
      throw ModelFileError(.malformed, line: lineOfFault(bytes), reason: "It is not valid UTF-8.")
    }
    // The parser would take a zero for a sign of another encoding.
    if let place = bytes.firstIndex(where: { $0 < 0x20 && $0 != 0x09 && $0 != 0x0A && $0 != 0x0D }) {
      let line = bytes[..<place].reduce(1) { $1 == UInt8(ascii: "\n") ? $0 + 1 : $0 }
      throw ModelFileError(.malformed, line: line, reason: "It holds the character \(bytes[place]), which XML does not have.")
    }
    let result = bytes.withUnsafeBytes { bytes -> Result<Void, ModelFileError> in
      var scan = ContentsScan(bytes: bytes, options: options)
      return Result { () throws(ModelFileError) in try scan.run() }
    }
    try result.get()
  }

  private init(bytes: UnsafeRawBufferPointer, options: ModelFileOptions) {
    self.bytes = bytes
    self.options = options
  }

  /// The line at which UTF-8 ends to be valid.
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
      default: throw fault("There is text between the elements; a model file has elements and attributes only.")
      }
    }
    if depth > 0 { throw fault("It ends too soon: \(depth) \(depth == 1 ? "element is" : "elements are") still open.") }
    if elementCount == 0 { throw ModelFileError(.notAModel, reason: "It holds no XML.") }
  }

  private mutating func markup() throws(ModelFileError) {
    if starts(with: "<!--") {
      place += 4
      try skip(through: "-->", "a comment")
    } else if starts(with: "<!DOCTYPE") {
      throw fault("It has a document type, which no model file needs and which can make a reader run out of memory. Remove it.")
    } else if starts(with: "<!") {
      throw fault("It has a declaration or literal text; a model file has elements and attributes only.")
    } else if starts(with: "<?") {
      throw fault("It has a processing instruction, which no model file has. Remove it.")
    } else if starts(with: "</") {
      depth -= 1
      if depth < 0 { throw fault("An element ends that did not begin.") }
      try skip(through: ">", "the end of an element")
    } else {
      try startTag()
    }
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
      case UInt8(ascii: "<"): throw fault("A tag begins inside another, which began in line \(first).")
      default: step()
      }
    }
    throw fault("It ends too soon, in a tag that began in line \(first).")
  }

  /// A value, from its opening quotation mark to behind its closing one.
  private mutating func value() throws(ModelFileError) {
    let quotationMark = bytes[place], first = line, start = place
    step()
    while place < bytes.count {
      if bytes[place] == quotationMark { return step() }
      if bytes[place] == UInt8(ascii: "<") { throw fault("A value that began in line \(first) holds a \"<\", which is written \"&lt;\".") }
      guard place - start <= options.maximumValueByteCount else { throw beyond("bytes of one value", options.maximumValueByteCount) }
      step()
    }
    throw fault("It ends too soon, in a value that began in line \(first).")
  }

  /// The declaration at the beginning, of which the encoding counts.
  private mutating func declaration() throws(ModelFileError) {
    let start = place
    try skip(through: "?>", "the XML declaration")
    let words = String(decoding: bytes[start..<place], as: UTF8.self)
    guard let encoding = words.firstRange(of: "encoding") else { return }
    let quoted = words[encoding.upperBound...].drop { $0 == " " || $0 == "=" || $0 == "\t" || $0 == "\n" }
    let name = quoted.dropFirst().prefix { $0 != "\"" && $0 != "'" }
    guard name.lowercased() == "utf-8" else {
      throw fault("It says that its encoding is \(String(name).quoted); a model file is UTF-8.")
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
    throw fault("It ends too soon, in \(what) that began in line \(first).")
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
    ModelFileError(.tooLarge, line: line, reason: "It has more than \(limit) \(what). If that is right, raise the limit in the options.")
  }
}
