import HoldfastPropertyList
import HoldfastStore

/// The archive of a compiled model, with limits on what is read from it.
///
/// Many objects can reference the same one, so a small archive could describe a huge model. Therefore a shared object counts each time it
/// is read.
final class ModelArchive {
  private let archive: KeyedArchive
  private let mostValues: Int
  private let maximumByteCount: Int
  private var values = 0
  /// The bytes of the texts that were read. A shared text counts each time.
  private(set) var bytes = 0

  init(_ archive: KeyedArchive, _ options: ModelFileOptions) {
    self.archive = archive
    mostValues = options.maximumAttributeCount
    maximumByteCount = options.maximumByteCount
  }

  /// Counts the values in a list, or of an object's keys.
  func count(_ values: Int) throws(PropertyListError) {
    self.values += values
    try check()
  }

  /// Throws if more was read than allowed.
  func check() throws(PropertyListError) {
    if values > mostValues { throw PropertyListError(.tooLarge, "The archive's lists have more than \(mostValues) values.") }
    if bytes > maximumByteCount { throw PropertyListError(.tooLarge, "The archive's texts have more than \(maximumByteCount) bytes.") }
  }

  private func counted(_ text: String?) -> String? {
    bytes += text?.utf8.count ?? 0
    return text
  }

  // MARK: Access to the archive

  var root: PropertyList { get throws(PropertyListError) { try archive.root } }

  func object(_ reference: PropertyList?) throws(PropertyListError) -> KeyedArchive.Object { try archive.object(reference) }

  func string(_ reference: PropertyList?) throws(PropertyListError) -> String? {
    try check()
    return counted(try archive.string(reference))
  }

  func elements(_ reference: PropertyList?) throws(PropertyListError) -> [PropertyList]? {
    let found = try archive.elements(reference)
    try count(found?.count ?? 0)
    return found
  }

  func entries(_ reference: PropertyList?) throws(PropertyListError) -> [(key: String, value: PropertyList)]? {
    guard let found = try archive.countedEntries(reference) else { return nil }
    for entry in found.entries { _ = counted(entry.key) }
    try count(found.valueCount)
    return found.entries
  }

  func propertyListValue(of reference: PropertyList, limits: PropertyListLimits) throws(PropertyListError) -> PropertyList {
    try check()
    let value = try archive.propertyListValue(of: reference, limits: limits)
    count(value)
    return value
  }

  private func count(_ value: PropertyList) {
    switch value {
    case .string(let text): _ = counted(text)
    case .data(let data): bytes += data.count
    case .array(let elements):
      values += elements.count
      for element in elements { count(element) }
    case .dictionary(let entries):
      values += entries.count
      for (key, element) in entries {
        _ = counted(key)
        count(element)
      }
    case .null, .bool, .integer, .unsigned, .real, .date, .uid: break
    }
  }
}
