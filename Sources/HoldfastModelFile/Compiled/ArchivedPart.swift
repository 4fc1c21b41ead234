import HoldfastPropertyList
import HoldfastStore

/// An object of a model's archive. Reads the values of its keys, and throws an error with the location if one has the wrong type.
struct ArchivedPart {
  let archive: ModelArchive
  let instance: KeyedArchive.Instance
  /// The name in errors: `attribute "age" of entity "Person"`.
  var element: String

  /// The referenced object; nil if there is none.
  init?(_ archive: ModelArchive, _ reference: PropertyList?, as element: String) throws(ModelFileError) {
    let found: KeyedArchive.Object
    do { found = try archive.object(reference) } catch { throw ModelFileError(.malformed, element: element, cause: error) }
    switch found {
    case .null: return nil
    case .value: throw ModelFileError(.malformed, element: element, reason: "The archive contains a plain value instead of an object.")
    case .instance(let instance): (self.archive, self.instance, self.element) = (archive, instance, element)
    }
  }

  var className: String { instance.className }

  func failure(_ reason: String, _ code: ModelFileError.Code = .malformed) -> ModelFileError {
    ModelFileError(code, element: "\(element) (object \(instance.number) of the archive)", reason: reason)
  }

  private func failure(_ cause: PropertyListError, under key: String) -> ModelFileError {
    ModelFileError(.malformed, element: "\(element) (object \(instance.number) of the archive), key \(key.quoted)", cause: cause)
  }

  // MARK: Values

  /// The text of a key; nil if there is none.
  func text(_ key: String) throws(ModelFileError) -> String? {
    do throws(PropertyListError) {
      if let text = try archive.string(instance[key]) { return text }
      if case .null = try archive.object(instance[key]) { return nil }
    } catch { throw failure(error, under: key) }
    throw failure("The value of \(key) isn't text.")
  }

  /// The text of a key; nil if the text is missing or empty, because Xcode writes both for no text.
  func filledText(_ key: String) throws(ModelFileError) -> String? {
    try text(key).flatMap { $0.isEmpty ? nil : $0 }
  }

  func requiredText(_ key: String) throws(ModelFileError) -> String {
    guard let text = try text(key) else { throw failure("The key \(key) is missing.") }
    return text
  }

  private func value(_ key: String) throws(ModelFileError) -> PropertyList? {
    do throws(PropertyListError) {
      switch try archive.object(instance[key]) {
      case .null: return nil
      case .value(let value): return value
      case .instance: break
      }
    } catch { throw failure(error, under: key) }
    throw failure("The value of \(key) isn't a plain value.")
  }

  /// The integer of a key; nil if there is none.
  func integer(_ key: String) throws(ModelFileError) -> Int? {
    switch try value(key) {
    case nil: return nil
    case .bool(let flag): return flag ? 1 : 0
    case .integer(let number): if let number = Int(exactly: number) { return number }
    default: break
    }
    throw failure("The value of \(key) isn't an integer.")
  }

  /// The boolean of a key. Archives omit false.
  func flag(_ key: String) throws(ModelFileError) -> Bool { try integer(key) ?? 0 != 0 }

  /// The bytes of a key; nil if there are none.
  func bytes(_ key: String) throws(ModelFileError) -> [UInt8]? {
    guard let reference = instance[key] else { return nil }
    do throws(PropertyListError) {
      switch try archive.propertyListValue(of: reference, limits: PropertyListLimits(bytes: 1 << 16, depth: 1)) {
      case .null: return nil
      case .data(let bytes): return bytes
      default: break
      }
    } catch { throw failure(error, under: key) }
    throw failure("The value of \(key) isn't bytes.")
  }

  // MARK: Other objects

  /// The object of a key; nil if there is none.
  func part(_ key: String) throws(ModelFileError) -> ArchivedPart? { try ArchivedPart(archive, instance[key], as: element) }

  /// The references in the list of a key; empty if there is no list.
  func list(_ key: String) throws(ModelFileError) -> [PropertyList] {
    do throws(PropertyListError) { return try archive.elements(instance[key]) ?? [] } catch { throw failure(error, under: key) }
  }

  /// The entries of the dictionary of a key, sorted by name; empty if there is no dictionary.
  func entries(_ key: String) throws(ModelFileError) -> [(key: String, value: PropertyList)] {
    do throws(PropertyListError) {
      return (try archive.entries(instance[key]) ?? []).sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    } catch { throw failure(error, under: key) }
  }

  /// The text of a reference in the list of a key.
  func text(of reference: PropertyList, in key: String) throws(ModelFileError) -> String {
    do throws(PropertyListError) {
      if let text = try archive.string(reference) { return text }
    } catch { throw failure(error, under: key) }
    throw failure("A value in \(key) isn't text.")
  }

  /// The keys with a value, except for known ones.
  func keys(besides known: Set<String>) throws(ModelFileError) -> [String] {
    do throws(PropertyListError) { try archive.count(max(0, instance.fields.count - known.count)) } catch {
      throw ModelFileError(.malformed, element: element, cause: error)
    }
    var found: [String] = []
    for key in instance.fields.keys.filter({ !known.contains($0) && $0 != KeyedArchive.Instance.classKey }).sorted() {
      do throws(PropertyListError) {
        if case .null = try archive.object(instance[key]) { continue }
      } catch { throw failure(error, under: key) }
      found.append(key)
    }
    return found
  }
}

extension ModelFileError {
  /// The error for an unreadable object of an archive.
  init(_ code: Code, path: String? = nil, element: String? = nil, cause: PropertyListError) {
    let reason =
      switch cause.code {
      case .tooLarge, .tooDeep: "The archive exceeds the limits."
      case .notAPropertyList: "The data isn't a compiled model."
      default: "The archive is damaged, or was written by an unknown program."
      }
    let isTooLarge = [.tooLarge, .tooDeep].contains(cause.code)
    self.init(isTooLarge ? .tooLarge : code, path: path, element: element, reason: reason, cause: cause)
  }
}
