extension KeyedArchive {
  /// Returns a keyed archive of a property list, in the binary format.
  ///
  /// Apple's default transformer stores such archives in Transformable attributes and reads them. Arrays and dictionaries become `NSArray`
  /// and `NSDictionary`, dates `NSDate`, and ``PropertyList/null`` `NSNull`. ``propertyListValue(limits:)`` returns the same property list.
  ///
  /// - Throws: ``PropertyListError`` with code ``PropertyListError/Code/unsupported`` for a reference of another archive.
  public static func bytes(of value: PropertyList) throws(PropertyListError) -> [UInt8] {
    var writer = KeyedArchiveWriter()
    let root = try writer.reference(value)
    return PropertyList.dictionary([
      "$archiver": .string("NSKeyedArchiver"), "$version": .integer(100_000), "$top": .dictionary(["root": root]),
      "$objects": .array(writer.objects),
    ]).binary
  }
}

private struct KeyedArchiveWriter {
  private(set) var objects: [PropertyList] = [.string("$null")]
  /// Texts and class descriptions, each stored once.
  private var texts: [ExactText: PropertyList] = [:]
  private var classes: [String: PropertyList] = [:]

  private mutating func add(_ object: PropertyList) -> PropertyList {
    objects.append(object)
    return .uid(UInt64(objects.count - 1))
  }

  /// Archives a value and returns the reference to it.
  mutating func reference(_ value: PropertyList) throws(PropertyListError) -> PropertyList {
    switch value {
    case .null: return add(.dictionary(["$class": classReference("NSNull")]))
    case .date(let seconds): return add(.dictionary(["$class": classReference("NSDate"), "NS.time": .real(seconds)]))
    case .string(let text): return reference(text: text)
    case .bool, .integer, .unsigned, .real, .data: return add(value)
    case .uid: throw PropertyListError(.unsupported, "A reference of a keyed archive isn't valid in another one.")
    case .array(let values): return try list("NSArray", ["NS.objects": values])
    case .dictionary(let entries):
      let sorted = entries.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
      return try list("NSDictionary", ["NS.keys": sorted.map { .string($0.key) }, "NS.objects": sorted.map(\.value)])
    }
  }

  private mutating func reference(text: String) -> PropertyList {
    if let known = texts[ExactText(text)] { return known }
    // Text that is equal to the name of the null object is wrapped in an object.
    let new =
      text == "$null" ? add(.dictionary(["$class": classReference("NSString"), "NS.string": .string(text)])) : add(.string(text))
    texts[ExactText(text)] = new
    return new
  }

  private mutating func list(_ className: String, _ parts: [String: [PropertyList]]) throws(PropertyListError) -> PropertyList {
    // As in Apple's archives, a list precedes its parts.
    let place = objects.count
    objects.append(.null)
    var values: [String: PropertyList] = [:]
    for key in parts.keys.sorted() {
      var references: [PropertyList] = []
      for part in parts[key] ?? [] { references.append(try reference(part)) }
      values[key] = .array(references)
    }
    values["$class"] = classReference(className)
    objects[place] = .dictionary(values)
    return .uid(UInt64(place))
  }

  private mutating func classReference(_ name: String) -> PropertyList {
    if let known = classes[name] { return known }
    let new = add(.dictionary(["$classname": .string(name), "$classes": .array([.string(name), .string("NSObject")])]))
    classes[name] = new
    return new
  }
}
