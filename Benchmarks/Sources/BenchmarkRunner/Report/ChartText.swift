/// Text inside charts, which does not wrap and cannot be measured here.
enum ChartText {
  /// About how wide a text is at the size of charts: no less than in the widest of the usual fonts, and a guess for what is not Latin.
  static func width(_ text: String) -> Double { text.unicodeScalars.reduce(0) { $0 + width($1) } }

  private static func width(_ scalar: Unicode.Scalar) -> Double {
    switch scalar {
    case "m", "w", "M", "W", "@", "%": 12
    case "i", "j", "l", "t", "f", "r", "I", " ", ".", ",", ":", "'": 5
    case "A"..."Z": 9
    default: scalar.isASCII ? 7.8 : 13
    }
  }

  /// The text, or as much of its beginning as fits with an ellipsis.
  static func fitted(_ text: String, width: Double) -> String {
    if self.width(text) <= width { return text }
    var short = text
    while !short.isEmpty, self.width(short) + 13 > width { short.removeLast() }
    return short + "…"
  }
}
