/// Text inside charts, which doesn't wrap and can't be measured here.
enum ChartText {
  /// The approximate width of text at the size used in charts: an upper bound for common fonts and Latin text, otherwise an
  /// estimate.
  static func width(_ text: String) -> Double { text.unicodeScalars.reduce(0) { $0 + width($1) } }

  private static func width(_ scalar: Unicode.Scalar) -> Double {
    switch scalar {
    case "m", "w", "M", "W", "@", "%": 12
    case "i", "j", "l", "t", "f", "r", "I", " ", ".", ",", ":", "'": 5
    case "A"..."Z": 9
    default: scalar.isASCII ? 7.8 : 13
    }
  }

  /// The text, truncated with an ellipsis if it doesn't fit.
  static func fitted(_ text: String, width: Double) -> String {
    if self.width(text) <= width { return text }
    var short = text
    while !short.isEmpty, self.width(short) + 13 > width { short.removeLast() }
    return short + "…"
  }
}
