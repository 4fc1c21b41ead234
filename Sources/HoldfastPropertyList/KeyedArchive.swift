/// The objects of a keyed archive (`NSKeyedArchiver`) as plain values. Classes are never instantiated.
///
/// If you know the structure, traverse it with ``root`` and ``object(_:)``. For plain data, use ``propertyListValue(limits:)``.
///
/// ```swift
/// let archive = try KeyedArchive(bytes)
/// guard case .instance(let model) = try archive.object(archive.root), model.className == "NSManagedObjectModel" else { return [] }
/// let entities = try archive.entries(model["NSEntities"]) ?? []
/// return entities.map(\.key)
/// ```
///
/// It isn't a decoder: the caller interprets the keys of each class.
public struct KeyedArchive: Sendable {
  /// An object of an archive.
  public enum Object: Sendable, Hashable {
    /// No object.
    case null
    /// Text, a number, Boolean value, date or bytes that the archive stores directly.
    case value(PropertyList)
    /// An object of a class.
    case instance(Instance)
  }

  /// An object of a class, with its class names and the values of its keys.
  public struct Instance: Sendable, Hashable {
    /// The index of the object in the archive, which identifies it.
    public let number: Int
    /// The name of the class.
    public let className: String
    /// The names of the class and its superclasses, as far as the archive contains them.
    public let classNames: [String]
    /// The values by key, including `$class`, shared with the archive without a copy.
    package let fields: [String: PropertyList]

    /// The values by key. References to other objects are ``PropertyList/uid(_:)``. Takes time proportional to the number of keys.
    public var values: [String: PropertyList] { fields.filter { $0.key != Instance.classKey } }

    /// The value for a key, or nil if there is none.
    public subscript(key: String) -> PropertyList? { key == Instance.classKey ? nil : fields[key] }

    package static let classKey = "$class"

    /// Whether the object is of a class or one of its subclasses.
    public func isKind(of name: String) -> Bool { className == name || classNames.contains(name) }
  }

  /// The named objects of the archive, usually only `root`.
  public let top: [String: PropertyList]
  private let objects: [PropertyList]
  private let classes: [Int: (name: String, names: [String])]

  /// The number of objects.
  public var count: Int { objects.count }

  /// Reads an archive in the binary or the XML format.
  ///
  /// - Throws: ``PropertyListError``.
  public init(_ bytes: [UInt8], limits: PropertyListLimits = PropertyListLimits()) throws(PropertyListError) {
    try self.init(PropertyList(bytes, limits: limits))
  }

  /// Creates an archive from a property list.
  ///
  /// - Throws: ``PropertyListError`` if the list isn't a keyed archive.
  public init(_ list: PropertyList) throws(PropertyListError) {
    guard let archiver = list["$archiver"]?.string, let top = list["$top"]?.dictionary, let objects = list["$objects"]?.array else {
      throw PropertyListError(.notAPropertyList, "The property list isn't a keyed archive.")
    }
    guard list["$version"]?.integer == 100_000 else {
      throw PropertyListError(.unsupported, "The keyed archive, by \(archiver.prefix(40)), has an unknown version.")
    }
    self.top = top
    self.objects = objects
    classes = Self.classes(objects)
  }

  /// The classes, by the indexes of the objects that describe them.
  private static func classes(_ objects: [PropertyList]) -> [Int: (name: String, names: [String])] {
    var classes: [Int: (name: String, names: [String])] = [:]
    for (number, object) in objects.enumerated() {
      guard case .dictionary(let values) = object, let name = values["$classname"]?.string else { continue }
      classes[number] = (name, (values["$classes"]?.array ?? []).compactMap(\.string))
    }
    return classes
  }

  /// The reference to the root object: the one named `root`, or the only one.
  ///
  /// - Throws: ``PropertyListError`` if there is none, or if there are several and none has this name.
  public var root: PropertyList {
    get throws(PropertyListError) {
      let found = top["root"] ?? (top.count == 1 ? top.first?.value : nil)
      guard let found, found.uid != nil else {
        throw PropertyListError(.damaged, "The keyed archive has no root object.")
      }
      return found
    }
  }

  /// Returns the object of a reference.
  ///
  /// Nil is the null object, and a value that isn't a reference is returned unchanged.
  ///
  /// - Throws: ``PropertyListError`` if the reference is invalid or its object has no class.
  public func object(_ reference: PropertyList?) throws(PropertyListError) -> Object {
    guard let reference else { return .null }
    guard case .uid(let uid) = reference else { return .value(reference) }
    guard let number = Int(exactly: uid), number < objects.count else {
      throw PropertyListError(.damaged, "The object \(uid) doesn't exist in the keyed archive.")
    }
    switch objects[number] {
    case .string("$null"): return .null
    case .dictionary(let values): return .instance(try instance(number, values))
    case .uid, .array, .null: throw PropertyListError(.damaged, at: .object(number), "The value isn't an object.")
    case let value: return .value(value)
    }
  }

  private func instance(_ number: Int, _ values: [String: PropertyList]) throws(PropertyListError) -> Instance {
    guard let uid = values[Instance.classKey]?.uid, let place = Int(exactly: uid), let description = classes[place] else {
      throw PropertyListError(.damaged, at: .object(number), "The object has no class.")
    }
    return Instance(number: number, className: description.name, classNames: description.names, fields: values)
  }
}
