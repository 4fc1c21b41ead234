/// Comma-separated values, as in RFC 4180: fields with commas, quotation marks or line breaks are quoted.
///
/// An empty field is nil, and a quoted empty field is an empty text.
enum CSVText {
  /// A line of fields, with its end.
  static func line(_ fields: [String?]) -> String { fields.map(field).joined(separator: ",") + "\r\n" }

  private static func field(_ text: String?) -> String {
    guard let text else { return "" }
    let isPlain =
      !text.isEmpty && !text.unicodeScalars.contains { ",\"\r\n".unicodeScalars.contains($0) }
      && text.first?.isWhitespace == false && text.last?.isWhitespace == false
    if isPlain { return text }
    // A quotation mark and a combining mark are one character.
    var quoted = String.UnicodeScalarView()
    for scalar in text.unicodeScalars { quoted.append(contentsOf: scalar == "\"" ? [scalar, scalar] : [scalar]) }
    return "\"\(String(quoted))\""
  }

  /// A record with the number of the line on which it begins, from 1.
  struct Record {
    var line: Int
    var fields: [String?]
  }

  /// Why a text isn't CSV, and on which line.
  struct Fault: Error {
    var line: Int
    var reason: String
  }

  /// The records of a file, without empty lines.
  static func records(_ text: String) throws(Fault) -> [Record] {
    var reader = Reader(text.unicodeScalars)
    var records: [Record] = []
    while let record = try reader.next() { if record.fields.count > 1 || record.fields[0] != nil { records.append(record) } }
    return records
  }

  private struct Reader {
    private let scalars: String.UnicodeScalarView
    private var place: String.UnicodeScalarView.Index
    private var line = 1

    init(_ scalars: String.UnicodeScalarView) {
      self.scalars = scalars
      // Excel begins files with a mark.
      place = scalars.first == "\u{FEFF}" ? scalars.index(after: scalars.startIndex) : scalars.startIndex
    }

    private var current: Unicode.Scalar? { place < scalars.endIndex ? scalars[place] : nil }

    private mutating func step() {
      let scalar = scalars[place]
      place = scalars.index(after: place)
      // A carriage return alone ends a line, too.
      if scalar == "\n" || (scalar == "\r" && current != "\n") { line += 1 }
    }

    mutating func next() throws(Fault) -> Record? {
      if current == nil { return nil }
      var record = Record(line: line, fields: [])
      while true {
        record.fields.append(try field())
        switch current {
        case ",": step()
        case "\r", "\n":
          if current == "\r" { step() }
          if current == "\n" { step() }
          return record
        default: return record
        }
      }
    }

    private mutating func field() throws(Fault) -> String? {
      var text = String.UnicodeScalarView()
      guard current == "\"" else {
        while let scalar = current, scalar != ",", scalar != "\r", scalar != "\n" {
          if scalar == "\"" { throw Fault(line: line, reason: "A quotation mark is inside a field without quotation marks.") }
          text.append(scalar)
          step()
        }
        return text.isEmpty ? nil : String(text)
      }
      let first = line
      step()
      while let scalar = current {
        step()
        if scalar != "\"" {
          text.append(scalar)
        } else if current == "\"" {
          text.append(scalar)
          step()
        } else {
          guard current == nil || current == "," || current == "\r" || current == "\n" else {
            throw Fault(line: line, reason: "Text follows the quotation mark that ends a field.")
          }
          return String(text)
        }
      }
      throw Fault(line: first, reason: "The quotation mark that begins a field has no end.")
    }
  }
}
