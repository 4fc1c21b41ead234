import HoldfastStore

/// Goes over what stands before a file's outermost element, before the XML parser sees it, and refuses what could lead the parser
/// elsewhere: other encodings than UTF-8, other document types than Core Data's, declarations, processing instructions.
///
/// It knows no more of XML than that; what passes may still be malformed, which the parser finds.
struct XMLProlog {
  private let bytes: UnsafeRawBufferPointer
  private let errors: XMLErrors
  private var place = 0
  /// Whether the document type says that it is a store.
  private var isRecognised = false

  /// The prolog has to end within so many bytes.
  static let mostBytes = 1 << 16

  /// - Parameter bytes: the beginning of the file, of ``mostBytes`` or all that there are.
  /// - Returns: how many bytes the parser must not see, which are a mark of the encoding; and whether there is a document type.
  static func check(_ bytes: UnsafeRawBufferPointer, _ errors: XMLErrors) throws(StoreError) -> (hidden: Int, hasDocumentType: Bool) {
    var prolog = XMLProlog(bytes: bytes, errors: errors)
    return (try prolog.run(), prolog.isRecognised)
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
        try skip(behind: "-->", "a comment")
      } else if !hasType, skip("<!DOCTYPE") {
        try documentType()
        hasType = true
      } else if isNext("<database") {
        return hidden
      } else if isNext("<?") {
        throw fault("It has a processing instruction, which no store has.")
      } else if isNext("<!") {
        throw fault("It has a declaration where its first element should begin.")
      } else {
        throw fault("It does not go on to an element \"database\".")
      }
    }
  }

  private func fault(_ what: String) -> StoreError {
    isRecognised ? errors.damaged(what, "That is before its first element.") : errors.notAStore(what)
  }

  /// The declaration, of which the encoding counts.
  private mutating func declaration() throws(StoreError) {
    let start = place
    try skip(behind: "?>", "the XML declaration")
    let words = String(decoding: bytes[start..<place], as: UTF8.self)
    guard let encoding = words.firstRange(of: "encoding") else { return }
    let quoted = words[encoding.upperBound...].drop { $0 == " " || $0 == "=" || $0 == "\t" || $0 == "\n" || $0 == "\r" || $0 == "\r\n" }
    if quoted.dropFirst().prefix(while: { $0 != "\"" && $0 != "'" }).lowercased() != "utf-8" {
      throw fault("It says that its encoding is another than UTF-8.")
    }
  }

  /// The document type behind its first word.
  private mutating func documentType() throws(StoreError) {
    let hadSpace = skipSpace()
    guard hadSpace, skip("database"), place < bytes.count, !isName(bytes[place]) else {
      throw fault("Its document type is none of a store.")
    }
    isRecognised = true
    skipSpace()
    if skip("SYSTEM") {
      skipSpace()
      if skip("\"") {
        try skip(behind: "\"", "the document type")
      } else if skip("'") {
        try skip(behind: "'", "the document type")
      }
      skipSpace()
    }
    guard skip(">") else { throw fault("Its document type has declarations or names a public one, which no store has.") }
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
    throw fault("There is no end of \(what) within the first \(XMLProlog.mostBytes) bytes.")
  }
}
