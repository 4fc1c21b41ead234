/// Formats figures with three digits and a suitable unit.
enum Units {
  /// Formats seconds: "12.3 µs", "1.23 ms", "45.6 s".
  static func seconds(_ value: Double) -> String {
    switch value {
    case ..<1e-3: digits(value * 1e6) + " µs"
    case ..<1: digits(value * 1e3) + " ms"
    default: digits(value) + " s"
    }
  }

  /// Formats bytes in powers of ten: "1.23 MB".
  static func bytes(_ value: Double) -> String {
    switch value.magnitude {
    case ..<1e3: decimal(value, places: 0) + " B"
    case ..<1e6: digits(value / 1e3) + " kB"
    case ..<1e9: digits(value / 1e6) + " MB"
    default: digits(value / 1e9) + " GB"
    }
  }

  /// Formats a count with thousands separators: "1,234,567".
  static func count(_ value: Int) -> String {
    let digits = String(value.magnitude)
    var text = ""
    for (place, digit) in digits.enumerated() {
      if place > 0, (digits.utf8.count - place) % 3 == 0 { text += "," }
      text.append(digit)
    }
    return (value < 0 ? "-" : "") + text
  }

  /// Formats a count with at most four characters and a letter: "999", "12.3k", "4.56M".
  static func shortCount(_ value: Int) -> String {
    switch value.magnitude {
    case ..<10_000: String(value)
    case ..<1_000_000: digits(Double(value) / 1e3) + "k"
    default: digits(Double(value) / 1e6) + "M"
    }
  }

  /// Formats a number with three digits, and decimals if there is room.
  static func digits(_ value: Double) -> String {
    switch value.magnitude {
    case ..<9.995: decimal(value, places: 2)
    case ..<99.95: decimal(value, places: 1)
    default: decimal(value, places: 0)
    }
  }
}
