/// The text of numbers and dates in XML property lists.
enum XMLPropertyListText {
  /// Parses a whole number in decimal or, with `0x`, hexadecimal digits.
  static func integer(_ text: Substring) -> PropertyList? {
    var digits = text, isNegative = false
    if let sign = digits.first, sign == "-" || sign == "+" {
      isNegative = sign == "-"
      digits = digits.dropFirst()
    }
    let isHexadecimal = digits.hasPrefix("0x") || digits.hasPrefix("0X")
    if isHexadecimal { digits = digits.dropFirst(2) }
    guard let first = digits.first, first != "-", first != "+", let size = UInt64(digits, radix: isHexadecimal ? 16 : 10) else {
      return nil
    }
    if size <= UInt64(Int64.max) { return .integer(isNegative ? -Int64(size) : Int64(size)) }
    if isNegative { return size == Int64.min.magnitude ? .integer(Int64.min) : nil }
    return .unsigned(size)
  }

  /// Parses a floating-point number, including infinity and NaN.
  static func real(_ text: Substring) -> Double? { Double(text) }

  static func text(ofReal value: Double) -> String {
    value.isNaN ? "nan" : value.isInfinite ? (value < 0 ? "-infinity" : "+infinity") : value.description
  }

  // MARK: Dates

  private static let secondsPerDay = 86_400
  /// The days from 2001-01-01 to a date in the proleptic Gregorian calendar.
  private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
    // Years begin in March here, so that the leap day is the last day.
    let shifted = month > 2 ? year : year - 1
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    return era * 146_097 + dayOfEra - 730_791
  }

  /// Parses a date such as `2001-01-01T00:00:00Z`. Returns seconds since that date.
  static func date(_ text: Substring) -> Double? {
    let bytes = Array(text.utf8)
    guard bytes.count == 20, bytes[4] == 0x2D, bytes[7] == 0x2D, bytes[10] == UInt8(ascii: "T"), bytes[13] == 0x3A, bytes[16] == 0x3A,
      bytes[19] == UInt8(ascii: "Z")
    else { return nil }
    func number(_ range: Range<Int>) -> Int? {
      var number = 0
      for byte in bytes[range] {
        guard (0x30...0x39).contains(byte) else { return nil }
        number = number * 10 + Int(byte - 0x30)
      }
      return number
    }
    guard let year = number(0..<4), let month = number(5..<7), let day = number(8..<10), let hour = number(11..<13),
      let minute = number(14..<16), let second = number(17..<19), (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60,
      second <= 60
    else { return nil }
    let days = days(year, month, day)
    // Rejects dates that don't exist, such as February 30.
    if date(ofDay: days) != (year, month, day) { return nil }
    return Double(days * secondsPerDay + hour * 3600 + minute * 60 + second)
  }

  /// The text of a date, without fractions of seconds. Nil for years that don't have four digits.
  static func text(ofDate seconds: Double) -> String? {
    guard seconds.isFinite, seconds.magnitude < 1e12 else { return nil }
    let whole = Int(seconds.rounded(.down))
    let day = whole >= 0 ? whole / secondsPerDay : (whole - secondsPerDay + 1) / secondsPerDay
    let (year, month, dayOfMonth) = date(ofDay: day)
    guard (0...9999).contains(year) else { return nil }
    let rest = whole - day * secondsPerDay
    let parts = [pad(month, 2), pad(dayOfMonth, 2)].joined(separator: "-")
    let clock = [rest / 3600, rest / 60 % 60, rest % 60].map { pad($0, 2) }.joined(separator: ":")
    return "\(pad(year, 4))-\(parts)T\(clock)Z"
  }

  private static func date(ofDay day: Int) -> (year: Int, month: Int, day: Int) {
    let shifted = day + 730_791
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let month = (5 * dayOfYear + 2) / 153
    let year = yearOfEra + era * 400 + (month >= 10 ? 1 : 0)
    return (year, month < 10 ? month + 3 : month - 9, dayOfYear - (153 * month + 2) / 5 + 1)
  }

  private static func pad(_ number: Int, _ count: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, count - digits.utf8.count)) + digits
  }
}
