import HoldfastPropertyList

/// The file `.xccurrentversion` of a model with several versions: a property list with the current version's folder.
enum CurrentVersionFile {
  static let name = ".xccurrentversion"
  /// The maximum size in bytes. A typical file has 250 bytes.
  static let maximumByteCount = 8 << 10

  /// The name of the folder; nil if the file is empty or its list has no name.
  static func read(_ bytes: [UInt8], path: String) throws(ModelFileError) -> String? {
    if bytes.isEmpty { return nil }
    func malformed(_ cause: (any Error)?) -> ModelFileError {
      ModelFileError(
        .malformed, path: path,
        reason: "The file isn't a property list with the current version's name. Choose the version in Xcode again, or remove the file: "
          + "the first version by name is then the current one.", cause: cause)
    }
    let list: PropertyList
    do { list = try PropertyList(bytes, limits: PropertyListLimits(bytes: maximumByteCount)) } catch { throw malformed(error) }
    guard let values = list.dictionary else { throw malformed(nil) }
    guard let value = values["_XCCurrentVersionName"] else { return nil }
    guard let name = value.string else { throw malformed(nil) }
    return name
  }

  /// The file as Xcode writes it.
  static func bytes(naming folder: String) -> [UInt8] {
    // A sign and a combining mark are one character.
    var escaped = String.UnicodeScalarView()
    for scalar in folder.unicodeScalars {
      switch scalar {
      case "&": escaped.append(contentsOf: "&amp;".unicodeScalars)
      case "<": escaped.append(contentsOf: "&lt;".unicodeScalars)
      case ">": escaped.append(contentsOf: "&gt;".unicodeScalars)
      default: escaped.append(scalar)
      }
    }
    return Array(
      """
      <?xml version="1.0" encoding="UTF-8"?>
      <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
      <plist version="1.0">
      <dict>
      \t<key>_XCCurrentVersionName</key>
      \t<string>\(String(escaped))</string>
      </dict>
      </plist>

      """.utf8)
  }
}
