extension StoreError {
  /// The text with control characters escaped as in a Swift literal, such as `\u{1B}`.
  ///
  /// Use it for texts from files or other programs that a store logs. Errors escape their own texts.
  public static func printable(_ text: String) -> String { text.escapingControlCharacters() }

  /// A name from a file in quotation marks, for the text of an error. Texts that can't be the name of an entity or property are replaced by
  /// three dots.
  ///
  /// In a damaged file, a name can contain users' data.
  public static func quotedName(_ name: some StringProtocol) -> String {
    let isName =
      name.utf8.count <= 64 && name.unicodeScalars.allSatisfy { $0 == "_" || $0.properties.isAlphabetic || ("0"..."9").contains($0) }
    return "\"\(isName ? String(name) : "…")\""
  }
}

extension Error {
  /// The error as the cause at the end of another one's description. A cause can quote names in a file, so control characters are escaped.
  package var asPrintableCause: String { " Cause: \(self)".escapingControlCharacters(keepsLines: true) }
}

extension String {
  /// The text with control characters escaped as in a Swift literal, such as `\u{1B}`.
  ///
  /// Text from files and file names is printed on terminals and written to logs. An escape sequence could change what a terminal shows. A
  /// line break could forge a log line. Characters that change the writing direction could hide the rest of the text.
  ///
  /// - Parameter keepsLines: Keeps line breaks and tabs. Defaults to false.
  package func escapingControlCharacters(keepsLines: Bool = false) -> String {
    func isEscaped(_ scalar: Unicode.Scalar) -> Bool {
      switch scalar.value {
      case 0x09, 0x0A: !keepsLines
      case 0x00...0x1F, 0x7F...0x9F: true
      // Line separators, and directional embeddings, overrides and isolates.
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
