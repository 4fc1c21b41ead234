import HoldfastStore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A value of a JSON document.
enum FixtureValue: Decodable {
  case null
  case bool(Bool)
  case integer(Int64)
  case number(Decimal)
  /// A number beyond the range of decimal numbers.
  case real(Double)
  case string(String)
  case array([FixtureValue])
  case object([String: FixtureValue])

  init(from decoder: any Decoder) throws {
    let value = try decoder.singleValueContainer()
    if value.decodeNil() {
      self = .null
    } else if let bool = try? value.decode(Bool.self) {
      self = .bool(bool)
    } else if let real = try? value.decode(Double.self) {
      // Not as an integer: the decoder reads 1.0000000000000001 as 1, and 12345678901234567.25 without fraction.
      if let number = try? value.decode(Decimal.self), Self.double(number) == real {
        self = Int64("\(number)").map { .integer($0) } ?? .number(number)
      } else {
        self = .real(real)
      }
    } else if let string = try? value.decode(String.self) {
      self = .string(string)
    } else if let array = try? value.decode([FixtureValue].self) {
      self = .array(array)
    } else {
      self = .object(try value.decode([String: FixtureValue].self))
    }
  }

  /// The value for an attribute; nil if it doesn't fit.
  func value(for type: AttributeType) -> StoreValue? {
    switch (self, type) {
    case (.null, _): .null
    case (.bool(let bool), .boolean): .bool(bool)
    case (.integer(let integer), .decimal): .decimal(Decimal(integer))
    case (.integer(let integer), .double): .double(Double(integer))
    case (.integer(let integer), .float): .float(Float(integer))
    case (.integer(let integer), .integer16), (.integer(let integer), .integer32), (.integer(let integer), .integer64): .int64(integer)
    case (.integer(let seconds), .date): .date(Double(seconds))
    case (.number(let number), .decimal): .decimal(number)
    case (.number(let number), .double): .double(Self.double(number))
    case (.number(let number), .float): Self.float(Self.double(number))
    case (.number(let seconds), .date): .date(Self.double(seconds))
    case (.real(let real), .double): .double(real)
    case (.real(let real), .float): Self.float(real)
    case (.real(let seconds), .date): .date(seconds)
    case (.string(let text), .string): .string(text)
    case (.string(let text), .uri): .uri(text)
    case (.string(let text), .uuid): UUID(uuidString: text).map { .uuid($0) }
    case (.string(let text), .decimal): Self.decimal(text).map { .decimal($0) }
    case (.string(let text), .date): Self.date(text).map { .date($0) }
    case (.string(let text), .binaryData), (.string(let text), .transformable): Data(base64Encoded: text).map { .data($0) }
    default: nil
    }
  }

  /// The number of an entire text, or NaN.
  private static func decimal(_ text: String) -> Decimal? { text == Decimal.nan.description ? .nan : DecimalText.number(text) }

  private static func double(_ number: Decimal) -> Double { Double("\(number)") ?? .nan }

  /// Nil for a number beyond the range of the type.
  private static func float(_ number: Double) -> StoreValue? {
    let value = Float(number)
    return value.isFinite ? .float(value) : nil
  }

  /// The date of a text: a day, or a time with its time zone. Nil for any other text.
  private static func date(_ text: String) -> Date? {
    let day = /\d{4}-\d\d-\d\d/, time = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(?:Z|([+-])(\d\d):?(\d\d))/
    if text.wholeMatch(of: day) != nil { return existing("\(text)T00:00:00Z") }
    guard let parts = text.wholeMatch(of: time)?.output, let whole = existing("\(parts.1)Z") else { return nil }
    let fraction = parts.2.flatMap { Double("0\($0)") } ?? 0
    let minutes = (parts.4.flatMap { Int($0) } ?? 0) * 60 + (parts.5.flatMap { Int($0) } ?? 0)
    return whole.addingTimeInterval(fraction - Double(parts.3 == "-" ? -minutes : minutes) * 60)
  }

  /// The date of a text in UTC; nil if there is no such day or time. Foundation's parser accepts a 30 February, and returns a day in March.
  private static func existing(_ text: String) -> Date? {
    guard let date = try? Date(text, strategy: .iso8601), date.formatted(.iso8601) == text else { return nil }
    return date
  }
}
