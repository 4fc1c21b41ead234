#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension KeyedArchive {
  /// Returns the archive's root as a property list, if all objects have plain values.
  ///
  /// Apple's default transformer stores such archives in Transformable attributes. The following classes have plain values, and so do the
  /// mutable and private subclasses that Foundation archives:
  ///
  /// - `NSString`, `NSNumber`, `NSData`, `NSDate`; but not `NSDecimalNumber`, because a property list has no decimals
  /// - `NSArray`, `NSSet` and `NSOrderedSet`, as arrays
  /// - `NSDictionary` and `NSKnownKeysDictionary1`, with text keys
  /// - `NSNull`, as ``PropertyList/null``
  /// - `NSUUID`, as text in upper case
  /// - `NSURL`, as text
  ///
  /// An object of any other class is an error.
  ///
  /// - Throws: ``PropertyListError`` with code ``PropertyListError/Code/unsupportedClass`` and the class name for any other class, or
  ///   ``PropertyListError/Code/cyclic`` for an object that contains itself.
  public func propertyListValue(limits: PropertyListLimits = PropertyListLimits()) throws(PropertyListError) -> PropertyList {
    try propertyListValue(of: root, limits: limits)
  }

  /// Returns the object of a reference as a property list; see ``propertyListValue(limits:)``.
  public func propertyListValue(of reference: PropertyList, limits: PropertyListLimits = PropertyListLimits()) throws(PropertyListError)
    -> PropertyList
  {
    var reader = ArchiveValueReader(archive: self, limits: limits)
    return try reader.value(reference, depth: 0).value
  }
}

private struct ArchiveValueReader {
  typealias Part = (value: PropertyList, extent: PropertyListExtent)

  let archive: KeyedArchive
  let limits: PropertyListLimits
  /// The objects read so far, by index; nil while an object is being read.
  private var known: [Int: Part?] = [:]

  init(archive: KeyedArchive, limits: PropertyListLimits) {
    self.archive = archive
    self.limits = limits
  }

  mutating func value(_ reference: PropertyList, depth: Int) throws(PropertyListError) -> Part {
    switch try archive.object(reference) {
    case .null: return (.null, PropertyListExtent())
    case .value(let value): return try plain(value)
    case .instance(let instance):
      if let part = known[instance.number] {
        if let part { return part }
        throw PropertyListError(.cyclic, at: .object(instance.number), "An object contains itself.")
      }
      known[instance.number] = .some(nil)
      let part = try self.part(instance, depth)
      known[instance.number] = part
      return part
    }
  }

  private func plain(_ value: PropertyList) throws(PropertyListError) -> Part {
    switch value {
    case .string(let text): return (value, PropertyListExtent(bytes: text.utf8.count))
    case .data(let bytes): return (value, PropertyListExtent(bytes: bytes.count))
    case .array, .dictionary, .uid: throw PropertyListError(.damaged, "A reference is expected, but this is a value.")
    default: return (value, PropertyListExtent())
    }
  }

  private mutating func part(_ instance: KeyedArchive.Instance, _ depth: Int) throws(PropertyListError) -> Part {
    switch instance.className {
    case "NSNull": return (.null, PropertyListExtent())
    case "NSString", "NSMutableString", "NSData", "NSMutableData", "NSDate", "NSUUID", "NSURL": return try plain(leaf(instance))
    case let name where KeyedArchive.listClasses.contains(name): return try array(instance, archive.elements(of: instance), depth)
    case let name where KeyedArchive.dictionaryClasses.contains(name):
      return try dictionary(instance, archive.entries(of: instance), depth)
    default:
      throw PropertyListError(
        .unsupportedClass, at: .object(instance.number), "An object of the class \(instance.className.prefix(100)) has no plain value.",
        className: instance.className)
    }
  }

  // MARK: Lists

  private mutating func array(_ instance: KeyedArchive.Instance, _ references: [PropertyList], _ depth: Int) throws(PropertyListError)
    -> Part
  {
    var values: [PropertyList] = [], extent = PropertyListExtent.emptyList
    for reference in references { values.append(try part(reference, instance, depth, &extent)) }
    return (.array(values), extent)
  }

  private mutating func dictionary(
    _ instance: KeyedArchive.Instance, _ references: KeyedArchive.Entries, _ depth: Int
  ) throws(PropertyListError) -> Part {
    var entries: [String: PropertyList] = [:], extent = PropertyListExtent.emptyList
    // Many dictionaries can share a long list of missing values.
    extent.add(missingValues: references.valueCount - references.values.count)
    try extent.check(limits, at: .object(instance.number))
    for (key, value) in zip(references.keys, references.values) {
      guard let name = try part(key, instance, depth, &extent).string else {
        throw PropertyListError(.unsupported, at: .object(instance.number), "A dictionary has a key that isn't text.")
      }
      try entries.add(try part(value, instance, depth, &extent), forKey: name, at: .object(instance.number))
    }
    return (.dictionary(entries), extent)
  }

  private mutating func part(
    _ reference: PropertyList, _ list: KeyedArchive.Instance, _ depth: Int, _ extent: inout PropertyListExtent
  ) throws(PropertyListError) -> PropertyList {
    let place = PropertyListError.Place.object(list.number)
    if depth >= limits.depth { throw PropertyListError(.tooDeep, at: place, "Lists are nested more than \(limits.depth) deep.") }
    let part = try value(reference, depth: depth + 1)
    extent.add(part.extent)
    try extent.check(limits, at: place)
    return part.value
  }

  // MARK: Leaves

  private func leaf(_ instance: KeyedArchive.Instance) throws(PropertyListError) -> PropertyList {
    switch instance.className {
    case "NSString", "NSMutableString":
      if let text = try archive.string(.uid(UInt64(instance.number))) { return .string(text) }
    case "NSData", "NSMutableData":
      if let bytes = try inner(instance, "NS.data")?.data ?? instance["NS.bytes"]?.data { return .data(bytes) }
    case "NSDate":
      if let seconds = instance["NS.time"]?.real ?? instance["NS.time"]?.integer.map(Double.init) { return .date(seconds) }
    case "NSUUID":
      if let bytes = instance["NS.uuidbytes"]?.data, bytes.count == 16 { return .string(text(ofUUID: bytes)) }
    default:
      if let text = try text(ofURL: instance, hops: 16) { return .string(text) }
    }
    throw KeyedArchive.damaged(instance)
  }

  /// A plain value for a key, stored directly or by reference.
  private func inner(_ instance: KeyedArchive.Instance, _ key: String) throws(PropertyListError) -> PropertyList? {
    if case .value(let value) = try archive.object(instance[key]) { value } else { nil }
  }

  private func text(ofUUID bytes: [UInt8]) -> String {
    UUID(
      uuid: (
        bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7], bytes[8], bytes[9], bytes[10], bytes[11],
        bytes[12], bytes[13], bytes[14], bytes[15]
      )
    ).uuidString
  }

  /// The text of a URL, which may be relative to another URL.
  private func text(ofURL instance: KeyedArchive.Instance, hops: Int) throws(PropertyListError) -> String? {
    guard hops > 0 else { throw PropertyListError(.tooDeep, at: .object(instance.number), "A URL has too many levels of base URLs.") }
    guard case .value(.string(let relative)) = try archive.object(instance["NS.relative"]) else { return nil }
    switch try archive.object(instance["NS.base"]) {
    case .null: return relative
    case .value: return nil
    case .instance(let base):
      guard base.className == "NSURL", let text = try text(ofURL: base, hops: hops - 1), let url = URL(string: text),
        let whole = URL(string: relative, relativeTo: url)
      else { return nil }
      return whole.absoluteString
    }
  }
}
