extension String {
  /// The text with every control character spelled out as in a Swift literal, `\u{1B}` for example.
  ///
  /// Text from files and names of files is printed on terminals and written to logs. An escape sequence in it could change what a terminal
  /// shows, a line break could forge a line of a log, and characters that change the direction of writing could hide the rest.
  ///
  /// - Parameter keepsLines: whether line breaks and tabs stay. Defaults to false.
  package func escapingControlCharacters(keepsLines: Bool = false) -> String {
    func isEscaped(_ scalar: Unicode.Scalar) -> Bool {
      switch scalar.value {
      case 0x09, 0x0A: !keepsLines
      case 0x00...0x1F, 0x7F...0x9F: true
      // Line separators, and what embeds, overrides or isolates a direction.
      case 0x2028...0x202E, 0x2066...0x2069: true
      default: false
      }
    }
    guard unicodeScalars.contains(where: isEscaped) else { return self }
    var text = ""
    for scalar in unicodeScalars {
      if isEscaped(scalar) {
        text += "\\u{" + String(scalar.value, radix: 16, uppercase: true) + "}"
      } else {
        text.unicodeScalars.append(scalar)
      }
    }
    return text
  }
}
