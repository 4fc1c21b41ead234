/// What the classes of Foundation keep under which keys, for readers who walk an archive.
extension KeyedArchive {
  /// The references that an array or set holds, in their order; nil when the reference leads to no object.
  ///
  /// - Throws: ``PropertyListError`` when it leads to something else than an array or set.
  public func elements(_ reference: PropertyList?) throws(PropertyListError) -> [PropertyList]? {
    switch try object(reference) {
    case .null: return nil
    case .value(.array(let references)): return references
    case .value: throw PropertyListError(.damaged, "A plain value stands where a list should be.")
    case .instance(let instance):
      guard Self.listClasses.contains(instance.className) else { throw Self.isNo("list", instance) }
      return try elements(of: instance)
    }
  }

  /// Keys and references of a dictionary whose keys are texts, in the order of the archive; nil when the reference leads to no object.
  ///
  /// - Throws: ``PropertyListError`` when it leads to something else, or a key is no text or stands twice.
  public func entries(_ reference: PropertyList?) throws(PropertyListError) -> [(key: String, value: PropertyList)]? {
    switch try object(reference) {
    case .null: return nil
    case .value: throw PropertyListError(.damaged, "A plain value stands where a dictionary should be.")
    case .instance(let instance):
      guard Self.dictionaryClasses.contains(instance.className) else { throw Self.isNo("dictionary", instance) }
      let (keys, values) = try entries(of: instance)
      var found: [(key: String, value: PropertyList)] = [], names: Set<String> = []
      for (key, value) in zip(keys, values) {
        guard let name = try string(key) else {
          throw PropertyListError(.unsupported, at: .object(instance.number), "A dictionary has a key that is no text.")
        }
        guard names.insert(name).inserted else {
          throw PropertyListError(.damaged, at: .object(instance.number), "A dictionary has a key twice.")
        }
        found.append((name, value))
      }
      return found
    }
  }

  /// The text that a reference leads to; nil for no object and for anything else.
  ///
  /// - Throws: ``PropertyListError`` when the reference leads nowhere.
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
    PropertyListError(.damaged, at: .object(instance.number), "An object of \(instance.className.prefix(100)) lacks what it consists of.")
  }

  private static func isNo(_ what: String, _ instance: Instance) -> PropertyListError {
    PropertyListError(
      .damaged, at: .object(instance.number), "An object of \(instance.className.prefix(100)) stands where a \(what) should be.")
  }

  /// The references of a list.
  func elements(of instance: Instance) throws(PropertyListError) -> [PropertyList] { try references(instance, "NS.objects", "NS.object.") }

  /// The references to keys and values of a dictionary, as many of each.
  func entries(of instance: Instance) throws(PropertyListError) -> (keys: [PropertyList], values: [PropertyList]) {
    if instance.className == "NSKnownKeysDictionary1" { return try knownEntries(of: instance) }
    let keys = try references(instance, "NS.keys", "NS.key."), values = try references(instance, "NS.objects", "NS.object.")
    guard keys.count == values.count else { throw Self.damaged(instance) }
    return (keys, values)
  }

  /// References in an array under one key, or in older archives each under a key that ends in its place.
  private func references(_ instance: Instance, _ key: String, _ prefix: String) throws(PropertyListError) -> [PropertyList] {
    if let found = instance[key] {
      guard let array = found.array else { throw Self.damaged(instance) }
      return array
    }
    var found: [PropertyList] = []
    while let next = instance["\(prefix)\(found.count)"] { found.append(next) }
    // Nothing else is under the keys of an old empty list.
    if found.isEmpty,
      instance.fields.keys.contains(where: { !$0.hasPrefix("NS.object") && !$0.hasPrefix("NS.key") && $0 != Instance.classKey })
    {
      throw Self.damaged(instance)
    }
    return found
  }

  /// Keys and values of a dictionary of known keys. Keys without a value are left out.
  private func knownEntries(of instance: Instance) throws(PropertyListError) -> (keys: [PropertyList], values: [PropertyList]) {
    guard case .instance(let mapping) = try object(instance["searchMapping"]), let keys = try elements(mapping["keys"]),
      let values = try elements(instance["values"]), keys.count == values.count
    else { throw Self.damaged(instance) }
    // One object stands for all values that are missing.
    let missing = instance["emptyToken"]
    var found: (keys: [PropertyList], values: [PropertyList]) = ([], [])
    for (key, value) in zip(keys, values) where value != missing {
      found.keys.append(key)
      found.values.append(value)
    }
    return found
  }
}
