/// Formats figures for a page.
enum FigureText {
  /// The text for a missing figure.
  static let none = "–"

  /// Formats seconds with three digits.
  static func seconds(_ value: Double?) -> String { known(value).map(Units.seconds) ?? none }

  /// Formats bytes with three digits.
  static func bytes(_ value: Double?) -> String { known(value).map(Units.bytes) ?? none }

  /// Formats a count.
  static func count(_ value: Int?) -> String { value.map(Units.count) ?? none }

  /// Formats a ratio to the minimum.
  static func ratio(_ value: Double?) -> String { known(value).map(Units.digits) ?? none }

  /// Formats median, minimum and maximum as a phrase.
  static func spread(_ spread: Spread, _ write: (Double?) -> String) -> String {
    "\(write(spread.median)) (\(write(spread.least)) to \(write(spread.greatest)))"
  }

  private static func known(_ value: Double?) -> Double? { value.flatMap { $0.isFinite ? $0 : nil } }
}

/// Formats labels of an axis: one digit and a unit, "200 ms", as short as possible.
enum TickText {
  /// Formats seconds.
  static func seconds(_ value: Double) -> String { text(value, [(1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")]) }

  /// Formats bytes in powers of ten.
  static func bytes(_ value: Double) -> String { text(value, [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")]) }

  /// Formats a count where there is little room: "5,000", "20k", "2M".
  static func shortCount(_ value: Double) -> String {
    if value.magnitude < 1e4 { return count(value) }
    return text(value, [(1e9, "G"), (1e6, "M"), (1e3, "k")], separator: "")
  }

  /// Formats a count: "1,000", "2M".
  static func count(_ value: Double) -> String {
    if value.magnitude < 1e6, value == value.rounded() { return Units.count(Int(value)) }
    return text(value, [(1e9, "G"), (1e6, "M"), (1, "")], separator: "")
  }

  /// Formats the number in the largest unit in which it is at least 1, or as a power if no unit fits.
  private static func text(_ value: Double, _ units: [(size: Double, name: String)], separator: String = " ") -> String {
    if value == 0 { return "0" }
    // A label is a product or a quotient: 0.3 / 1e-3 isn't necessarily 300 exactly.
    let unit = units.first { value >= $0.size * (1 - 1e-9) } ?? units[units.count - 1]
    let number = value / unit.size
    let isPlain = number >= 0.01 && number < 1e6
    return (isPlain ? trimmed(decimal(number, places: 2)) : power(number)) + separator + unit.name
  }

  /// Formats a number that fits no unit: "2e-7".
  private static func power(_ number: Double) -> String {
    var digit = number, exponent = 0
    while digit >= 9.5 { (digit, exponent) = (digit / 10, exponent + 1) }
    while digit < 0.95 { (digit, exponent) = (digit * 10, exponent - 1) }
    return decimal(digit, places: 0) + "e\(exponent)"
  }

  private static func trimmed(_ number: String) -> String {
    guard number.contains(".") else { return number }
    var number = number
    while number.last == "0" { number.removeLast() }
    if number.last == "." { number.removeLast() }
    return number
  }
}
