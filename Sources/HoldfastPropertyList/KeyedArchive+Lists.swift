/// The keys that Foundation's classes use, for callers that traverse an archive.
extension KeyedArchive {
  /// Returns the references in an array or set, or nil for the null object.
  ///
  /// - Throws: ``PropertyListError`` if the object isn't an array or set.
  public func elements(_ reference: PropertyList?) throws(PropertyListError) -> [PropertyList]? {
    switch try object(reference) {
    case .null: return nil
    case .value(.array(let references)): return references
    case .value: throw PropertyListError(.damaged, "A list is expected, but this is a plain value.")
    case .instance(let instance):
      guard Self.listClasses.contains(instance.className) else { throw Self.isNo("list", instance) }
      return try elements(of: instance)
    }
  }

  /// Returns the keys and references of a dictionary, or nil for the null object.
  ///
  /// The keys are text, and the order is that of the archive.
  ///
  /// - Throws: ``PropertyListError`` if the object isn't a dictionary, or a key isn't text, is a duplicate, or differs from another key
  ///   only in its Unicode normalization.
  public func entries(_ reference: PropertyList?) throws(PropertyListError) -> [(key: String, value: PropertyList)]? {
    try countedEntries(reference)?.entries
  }

  /// Returns the entries of a dictionary, and the number of values that were read to find them.
  package func countedEntries(_ reference: PropertyList?) throws(PropertyListError)
    -> (entries: [(key: String, value: PropertyList)], valueCount: Int)?
  {
    switch try object(reference) {
    case .null: return nil
    case .value: throw PropertyListError(.damaged, "A dictionary is expected, but this is a plain value.")
    case .instance(let instance):
      guard Self.dictionaryClasses.contains(instance.className) else { throw Self.isNo("dictionary", instance) }
      let (keys, values, valueCount) = try entries(of: instance)
      var found: [(key: String, value: PropertyList)] = [], names: Set<String> = []
      for (key, value) in zip(keys, values) {
        guard let name = try string(key) else {
          throw PropertyListError(.unsupported, at: .object(instance.number), "A dictionary has a key that isn't text.")
        }
        let (isNew, known) = names.insert(name)
        if !isNew { throw PropertyListError(duplicate: name, of: known, at: .object(instance.number)) }
        found.append((name, value))
      }
      return (found, valueCount)
    }
  }

  /// Returns the text of a reference, or nil for any other object.
  ///
  /// - Throws: ``PropertyListError`` if the reference is invalid.
  public func string(_ reference: PropertyList?) throws(PropertyListError) -> String? {
    switch try object(reference) {
    case .value(.string(let text)): return text
    case .instance(let instance) where instance.className == "NSString" || instance.className == "NSMutableString":
      if case .value(.string(let text)) = try object(instance["NS.string"]) { return text }
      if case .value(.data(let bytes)) = try object(instance["NS.bytes"]) { return String(validating: bytes, as: UTF8.self) }
      return nil
    default: return nil
    }
  }

  static let listClasses: Set<String> = [
    "NSArray", "NSMutableArray", "NSSet", "NSMutableSet", "NSOrderedSet", "NSMutableOrderedSet",
  ]
  static let dictionaryClasses: Set<String> = ["NSDictionary", "NSMutableDictionary", "NSKnownKeysDictionary1"]

  static func damaged(_ instance: Instance) -> PropertyListError {
    PropertyListError(.damaged, at: .object(instance.number), "An object of \(instance.className.prefix(100)) is incomplete.")
  }

  private static func isNo(_ what: String, _ instance: Instance) -> PropertyListError {
    PropertyListError(
      .damaged, at: .object(instance.number), "An object of \(instance.className.prefix(100)) isn't a \(what).")
  }

  /// The references in a list.
  func elements(of instance: Instance) throws(PropertyListError) -> [PropertyList] { try references(instance, "NS.objects", "NS.object.") }

  /// The references to the keys and values of a dictionary, in equal number.
  typealias Entries = (keys: [PropertyList], values: [PropertyList], valueCount: Int)

  /// The entries of a dictionary, and the number of values that were read. It includes those that represent missing values.
  func entries(of instance: Instance) throws(PropertyListError) -> Entries {
    if instance.className == "NSKnownKeysDictionary1" { return try knownEntries(of: instance) }
    let keys = try references(instance, "NS.keys", "NS.key."), values = try references(instance, "NS.objects", "NS.object.")
    guard keys.count == values.count else { throw Self.damaged(instance) }
    return (keys, values, values.count)
  }

  /// Returns the references in an array under one key or, in older archives, each under a numbered key.
  private func references(_ instance: Instance, _ key: String, _ prefix: String) throws(PropertyListError) -> [PropertyList] {
    if let found = instance[key] {
      guard let array = found.array else { throw Self.damaged(instance) }
      return array
    }
    var found: [PropertyList] = []
    while let next = instance["\(prefix)\(found.count)"] { found.append(next) }
    // An object without numbered keys is an empty list only if its class is its only key.
    if found.isEmpty && instance.fields.count > 1 { throw Self.damaged(instance) }
    return found
  }

  /// The keys and values of a dictionary with known keys. Omits keys without a value.
  private func knownEntries(of instance: Instance) throws(PropertyListError) -> Entries {
    guard case .instance(let mapping) = try object(instance["searchMapping"]), let keys = try elements(mapping["keys"]),
      let values = try elements(instance["values"]), keys.count == values.count
    else { throw Self.damaged(instance) }
    // One object represents all missing values.
    let missing = instance["emptyToken"]
    var found: Entries = ([], [], values.count)
    for (key, value) in zip(keys, values) where value != missing {
      found.keys.append(key)
      found.values.append(value)
    }
    return found
  }
}
