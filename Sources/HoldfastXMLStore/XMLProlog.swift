import HoldfastStore

/// Checks the part of a file before its root element, before the XML parser receives it.
///
/// It refuses everything that could redirect the parser: encodings other than UTF-8, document types other than Core Data's,
/// declarations and processing instructions. It doesn't check anything else; the parser finds malformed XML.
struct XMLProlog {
  private let bytes: UnsafeRawBufferPointer
  private let errors: XMLErrors
  private var place = 0
  /// Whether the document type is the one that stores use.
  private var isRecognised = false

  /// The maximum length of the prolog, in bytes.
  static let maximumByteCount = 1 << 16

  /// - Parameter bytes: The first ``maximumByteCount`` of the file, or the entire file if it is smaller.
  /// - Returns: The length of a byte order mark, which the parser must not receive, the offset of the root element, and whether there is a
  ///   document type.
  static func check(_ bytes: UnsafeRawBufferPointer, _ errors: XMLErrors) throws(StoreError) -> (
    hidden: Int, root: Int, hasDocumentType: Bool
  ) {
    var prolog = XMLProlog(bytes: bytes, errors: errors)
    return (try prolog.run(), prolog.place, prolog.isRecognised)
  }

  private init(bytes: UnsafeRawBufferPointer, errors: XMLErrors) {
    self.bytes = bytes
    self.errors = errors
  }

  private mutating func run() throws(StoreError) -> Int {
    let hidden = skip("\u{FEFF}") ? 3 : 0
    if isNext("<?xml") { try declaration() }
    var hasType = false
    while true {
      skipSpace()
      if skip("<!--") {
        try skip(behind: "-->", "A comment")
      } else if !hasType, skip("<!DOCTYPE") {
        try documentType()
        hasType = true
      } else if isNext("<database") {
        return hidden
      } else if isNext("<?") {
        throw fault("There is a processing instruction before the first element.")
      } else if isNext("<!") {
        throw fault("There is an unexpected declaration before the first element.")
      } else {
        throw fault("The root element isn't \"database\".")
      }
    }
  }

  private func fault(_ what: String) -> StoreError {
    isRecognised ? errors.damaged(what, " Location: before the first element.") : errors.notAStore(what)
  }

  /// Checks the encoding in the XML declaration.
  private mutating func declaration() throws(StoreError) {
    let start = place
    try skip(behind: "?>", "The XML declaration")
    let words = String(decoding: bytes[start..<place], as: UTF8.self)
    guard let encoding = words.firstRange(of: "encoding") else { return }
    let quoted = words[encoding.upperBound...].drop { $0 == " " || $0 == "=" || $0 == "\t" || $0 == "\n" || $0 == "\r" || $0 == "\r\n" }
    if quoted.dropFirst().prefix(while: { $0 != "\"" && $0 != "'" }).lowercased() != "utf-8" {
      throw fault("The declared encoding isn't UTF-8.")
    }
  }

  /// Checks the document type after its keyword.
  private mutating func documentType() throws(StoreError) {
    let hadSpace = skipSpace()
    guard hadSpace, skip("database"), place < bytes.count, !isName(bytes[place]) else {
      throw fault("The document type isn't \"database\".")
    }
    isRecognised = true
    skipSpace()
    if skip("SYSTEM") {
      skipSpace()
      if skip("\"") {
        try skip(behind: "\"", "The document type")
      } else if skip("'") {
        try skip(behind: "'", "The document type")
      }
      skipSpace()
    }
    guard skip(">") else { throw fault("The document type has declarations or a public identifier.") }
  }

  private func isName(_ byte: UInt8) -> Bool {
    byte >= 0x80 || (0x30...0x3A).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || byte == 0x5F
      || byte == 0x2D || byte == 0x2E
  }

  // MARK: Bytes

  private func isNext(_ text: StaticString) -> Bool {
    let count = text.utf8CodeUnitCount
    guard bytes.count - place >= count else { return false }
    return (0..<count).allSatisfy { bytes[place + $0] == text.utf8Start[$0] }
  }

  private mutating func skip(_ text: StaticString) -> Bool {
    guard isNext(text) else { return false }
    place += text.utf8CodeUnitCount
    return true
  }

  @discardableResult private mutating func skipSpace() -> Bool {
    let start = place
    while place < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[place]) { place += 1 }
    return place > start
  }

  private mutating func skip(behind end: StaticString, _ what: String) throws(StoreError) {
    while place < bytes.count {
      if skip(end) { return }
      place += 1
    }
    throw fault("\(what) doesn't end within the first \(XMLProlog.maximumByteCount) bytes.")
  }
}
