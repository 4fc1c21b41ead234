import Foundation
import HoldfastModelCode
import HoldfastModelFile
import HoldfastStore
import TestSupport
import Testing

/// Classes that are generated from models.
@Suite struct ModelCodeTests {
  private func kennel() throws -> ManagedObjectModel {
    try ManagedObjectModel(entities: [
      EntityDescription(
        "Dog",
        attributes: [AttributeDescription("name", .string, default: .string("")), AttributeDescription("chip", .string, isOptional: true)],
        relationships: [.toMany("walks", to: "Walk", inverse: "dog", deleteRule: .cascade)], uniquenessConstraints: [["chip"]]),
      EntityDescription(
        "Walk", attributes: [AttributeDescription("minutes", .integer32)], relationships: [.toOne("dog", to: "Dog", inverse: "walks")]),
    ])
  }

  @Test func aClassHasTwoFilesWordForWord() throws {
    let code = ModelCode(try kennel(), name: "Kennel")
    #expect(
      code.files.map(\.name) == [
        "Dog+Class.swift", "Dog+Properties.swift", "KennelModelClasses.swift", "Walk+Class.swift", "Walk+Properties.swift",
      ])
    #expect(code.files.map(\.isKept) == [true, false, false, true, false])
    #expect(
      code.files[0].text == """
        import Holdfast

        /// An object of the entity Dog.
        nonisolated final class Dog: ManagedObject {
          override class var entityName: String { Properties.entityName }
          override class var declaration: EntityDeclaration? { Properties.declaration }
        }

        """)
    #expect(
      code.files[4].text == #"""
        // Generated from the model. Don't change it: it is overwritten.

        import Holdfast

        nonisolated extension Walk {
          /// A whole number of 32 bits.
          var minutes: Int32 {
            get { self[property: Slots.minutes] }
            set { self[property: Slots.minutes] = newValue }
          }

          /// An object of Dog. The inverse is `Dog.walks`.
          var dog: Dog? {
            get { self[property: Slots.dog] }
            set { self[property: Slots.dog] = newValue }
          }

          /// The values of an object that can be sent to other threads, encoded and applied again.
          typealias Snapshot = ManagedObjectSnapshot<Walk>

          /// Inserts a new object.
          convenience init(
            context managedObjectContext: ManagedObjectContext,
            minutes: Int32,
            dog: Dog? = nil
          ) {
            self.init(insertedInto: managedObjectContext)
            self.minutes = minutes
            if let dog { self.dog = dog }
            finishInsertion()
          }

          /// Where an object keeps its properties.
          enum Slots {
            static var dog: SlotIndex { SlotIndex(ManagedObject.SlotCounts.slots) }
            static var minutes: SlotIndex { dog.advanced(by: slotCount(of: Dog?.self)) }
          }

          /// The numbers of an object's properties, for subclasses.
          enum SlotCounts {
            static var slots: Int { Slots.minutes.rawValue + slotCount(of: Int32.self) }
            static var toMany: Int { ManagedObject.SlotCounts.toMany }
            static var transients: Int { ManagedObject.SlotCounts.transients }
            static var transientLinks: Int { ManagedObject.SlotCounts.transientLinks }
          }

          /// What the model has of the class.
          enum Properties {
            /// The name of the entity.
            static var entityName: String { "Walk" }
            /// The entity.
            static var declaration: EntityDeclaration {
              var declaration = EntityDeclaration(Walk.self)
              declaration.properties.append(.property("minutes", \Walk.minutes))
              declaration.properties.append(.property("dog", \Walk.dog, inverse: \Dog.walks))
              return declaration
            }
          }
        }

        """#)
    #expect(code.files == ModelCode(try kennel(), name: "Kennel").files && code.notes.isEmpty)
  }

  @Test func namesThatSwiftOrManagedObjectUsesGetASuffix() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription(
        "Date", attributes: ["default", "isFault", "init", "value"].map { AttributeDescription($0, .string, isOptional: true) }),
      EntityDescription("Data", managedObjectClassName: "Shop.Item"), EntityDescription("Other", managedObjectClassName: "Item"),
      EntityDescription("TransientIndex"),
    ])
    let code = ModelCode(model, name: "my shop")
    let text = code.singleFile.text
    for line in [
      "final class DateObject: ManagedObject {", #"static var entityName: String { "Date" }"#, "var `default`: String? {",
      "var isFaultAttribute: String? {", "var initAttribute: String? {", "var value: String? {",
      #".property("isFault", \DateObject.isFaultAttribute)"#,
      "final class Item: ManagedObject {", "final class Other: ManagedObject {", "final class TransientIndexObject: ManagedObject {",
      "enum My_shopModelClasses {",
    ] { #expect(text.contains(line), "\(line) isn't in\n\(text)") }
  }

  /// The bug: in the list of classes, the compiler found the list or its member instead of the class.
  @Test func anEntityMayBeNamedLikeTheListOfClasses() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("classes", attributes: [AttributeDescription("KennelModelClasses", .string)]),
      EntityDescription("Dog", attributes: [AttributeDescription("classes", .integer16)]), EntityDescription("KennelModelClasses"),
    ])
    let text = ModelCode(model, name: "kennel").singleFile.text
    for line in [
      "final class classesObject: ManagedObject {", "final class KennelModelClassesObject: ManagedObject {", "var classes: Int16 {",
      "var KennelModelClasses: String {", "enum KennelModelClasses {", "static var classes: [ManagedObject.Type] {",
    ] { #expect(text.contains(line), "\(line) isn't in\n\(text)") }
    let messages = try SwiftTools.compile(text)
    #expect(!messages.contains("error:"), "\(messages)")
  }

  @Test func aPropertyMayBeNamedLikeTheFunctionThatCountsSlots() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Garage", attributes: [AttributeDescription("slotCount", .integer16), AttributeDescription("town", .string)]),
      EntityDescription("Tower", superentity: "Garage", attributes: [AttributeDescription("height", .double)]),
    ])
    let text = ModelCode(model, name: "Town").singleFile.text
    #expect(text.contains("static var town: SlotIndex { slotCount.advanced(by: ManagedObject.slotCount(of: Int16.self)) }"), "\(text)")
    let messages = try SwiftTools.compile(text)
    #expect(!messages.contains("error:"), "\(messages)")
  }

  /// The bug: the slot of the property behind `set` began with `set`, which the compiler takes for an accessor.
  @Test func aPropertyMayBeNamedLikeAnAccessor() throws {
    let names = [
      "_modify", "_read", "await", "borrow", "borrowing", "consuming", "copy", "didSet", "get", "modify", "mutate", "mutating",
      "nonmutating", "read", "set", "unsafe", "unsafeAddress", "weight", "willSet", "yield",
    ]
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Exercise", attributes: names.map { AttributeDescription($0, .integer16, isOptional: true) }),
      EntityDescription(
        "Workout", relationships: [.toOne("read", to: "Book", inverse: "set"), .toOne("set", to: "Book", inverse: "get")]),
      EntityDescription(
        "Book", relationships: [.toMany("get", to: "Workout", inverse: "set"), .toMany("set", to: "Workout", inverse: "read")]),
    ])
    let text = ModelCode(model, name: "Gym").singleFile.text
    #expect(text.contains("static var `unsafe`: SlotIndex { `set`.advanced(by: slotCount(of: Int16?.self)) }"), "\(text)")
    let messages = try SwiftTools.compile(text)
    #expect(!messages.contains("error:"), "\(messages)")
  }

  /// The bug: the property with the suffix had the name of another one, perhaps of a superclass.
  @Test func aNameWithASuffixIsNoOtherProperty() throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Item", attributes: [AttributeDescription("descriptionAttribute", .string, isOptional: true)]),
      EntityDescription(
        "Book", superentity: "Item",
        attributes: ["description", "isFault", "isFaultAttribute"].map { AttributeDescription($0, .string, isOptional: true) }),
    ])
    let text = ModelCode(model, name: "Shop").singleFile.text
    for line in [
      "\\Item.descriptionAttribute\n", #".property("description", \Book.descriptionAttribute_)"#,
      #".property("isFault", \Book.isFaultAttribute_)"#, #".property("isFaultAttribute", \Book.isFaultAttribute)"#,
    ] { #expect(text.contains(line), "\(line) isn't in\n\(text)") }
    let messages = try SwiftTools.compile(text)
    #expect(!messages.contains("error:"), "\(messages)")
  }

  /// The bug: where the code needs the type, the compiler found the property.
  @Test func aPropertyMayBeNamedLikeAType() throws {
    let model = try ManagedObjectModel(
      entities: [
        EntityDescription(
          "Meeting",
          attributes: [
            AttributeDescription("Date", .date), AttributeDescription("Data", .binaryData, isOptional: true),
            AttributeDescription("Properties", .string, default: "none"), AttributeDescription("weight", .decimal),
            .composite("Spot", "Spot"),
          ], relationships: [.toOne("Owner", to: "Owner", inverse: "Meeting")]),
        EntityDescription("Owner", relationships: [.toMany("Meeting", to: "Meeting", inverse: "Owner")]),
        EntityDescription("ClosedRange"), EntityDescription("FetchPredicate"),
      ], composites: [CompositeDescription("Spot", [AttributeDescription("Int16", .integer16, isOptional: true)])],
      fetchRequestTemplates: [
        FetchRequestDescription("later", entity: "Meeting", predicateFormat: "Date BETWEEN $range AND Owner.Meeting.@count > 1")
      ])
    let text = ModelCode(model, name: "Club").singleFile.text
    for line in [
      "var DateAttribute: Date {", #".property("Date", \Meeting.DateAttribute)"#, "var OwnerAttribute: Owner? {",
      "var MeetingAttribute: ToMany<Meeting> {", "var SpotAttribute: Spot? {", "var Int16Attribute: Int16?",
      "final class ClosedRangeObject: ManagedObject {", "final class FetchPredicateObject: ManagedObject {",
      "$0.OwnerAttribute.MeetingAttribute.count > 1",
    ] { #expect(text.contains(line), "\(line) isn't in\n\(text)") }
    let messages = try SwiftTools.compile(text)
    #expect(!messages.contains("error:"), "\(messages)")
  }

  /// The bug: the file of a class whose only dates are inherited didn't import Foundation, which its initializer needs.
  @Test(arguments: ModelCode.Access.allCases) func eachFileImportsTheTypesOfItsInitializer(_ access: ModelCode.Access) throws {
    let model = try ManagedObjectModel(entities: [
      EntityDescription("Vessel", isAbstract: true, attributes: [AttributeDescription("launched", .date)]),
      EntityDescription("Ferry", superentity: "Vessel", attributes: [AttributeDescription("seats", .integer16)]),
      EntityDescription("Beacon", isAbstract: true, attributes: [AttributeDescription("lit", .date, isOptional: true, isTransient: true)]),
      EntityDescription("Buoy", superentity: "Beacon", attributes: [AttributeDescription("number", .integer16)]),
    ])
    let code = ModelCode(model, name: "Harbour", access: access), texts = code.textsByName
    let importing = texts.filter { $0.value.contains("import Foundation\n") }.keys.sorted()
    #expect(importing == ["Beacon+Properties.swift", "Ferry+Properties.swift", "Vessel+Properties.swift"])
    guard TestTier.isFull || access == Self.compiledAccess else { return }
    let messages = try SwiftTools.compile(files: texts)
    #expect(!messages.contains("error:"), "\(messages)")
  }

  /// The compiler gets the files with one of both, or with both in the full tier.
  private static let compiledAccess = ModelCode.Access.allCases.randomElement()

  @Test func filesAreWrittenOnceOrWheneverTheyDiffer() throws {
    let folder = TemporaryFolder(), path = folder.file("classes"), code = ModelCode(try kennel(), name: "Kennel")
    #expect(try code.outdatedFiles(in: path) == code.files.map(\.name) && code.write(to: path) == code.files.map(\.name))
    #expect(try code.write(to: path).isEmpty && code.outdatedFiles(in: path).isEmpty)
    let own = "class Dog {}  // mine\n"
    try Data(own.utf8).write(to: URL(fileURLWithPath: path + "/Dog+Class.swift"))
    let walk = try String(contentsOfFile: path + "/Walk+Properties.swift", encoding: .utf8)
    try Data((walk + "// changed").utf8).write(to: URL(fileURLWithPath: path + "/Walk+Properties.swift"))
    #expect(try code.outdatedFiles(in: path) == ["Walk+Properties.swift"] && code.write(to: path) == ["Walk+Properties.swift"])
    #expect(try String(contentsOfFile: path + "/Dog+Class.swift", encoding: .utf8) == own)
    // A file that a person wrote isn't replaced.
    try Data("enum KennelModelClasses {}".utf8).write(to: URL(fileURLWithPath: path + "/KennelModelClasses.swift"))
    let refused = #expect(throws: ModelCodeError.self) { try code.write(to: path) }
    #expect(refused?.path.hasSuffix("KennelModelClasses.swift") == true && refused?.cause == nil)
    let smaller = ModelCode(
      try ManagedObjectModel(entities: [EntityDescription("Dog", attributes: [AttributeDescription("name", .string)])]), name: "Kennel")
    #expect(try smaller.orphanedFiles(in: path) == ["Walk+Properties.swift"])
    let error = #expect(throws: ModelCodeError.self) { try code.write(to: path + "/Dog+Class.swift") }
    #expect(error?.path.hasSuffix("Dog+Class.swift") == true)
  }

  /// The bug: a missing name was the default one, and the next option was the path.
  @Test func theProgramOfThePluginsRefusesOptionsWithoutAValue() throws {
    let folder = TemporaryFolder()
    // The built program is beside the test bundle.
    let program = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent("HoldfastGenerate")
    for arguments in [
      ["--output", "--check"], ["--output", "classes", "--name"], ["--output", "classes", "--name", "--public"], ["--single-file"],
      ["--single-file", "--public"],
    ] {
      let outcome = try Program.run(program.path, ["Kennel.xcdatamodel"] + arguments, in: folder.path)
      #expect(outcome.status == 64 && outcome.errors.hasPrefix("usage:"), "\(arguments): \(outcome)")
    }
    // There is no model.
    let outcome = try Program.run(program.path, ["Kennel.xcdatamodel", "--output", "classes", "--name", "Dogs"], in: folder.path)
    #expect(outcome.status == 1, "\(outcome)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [])
  }

  // MARK: Real models

  /// Models that Xcode wrote, also compiled ones.
  private static let models: [String] = {
    guard let corpus = ProcessInfo.processInfo.environment["HOLDFAST_CORPUS"] else { return [] }
    let files = FileManager.default.enumerator(atPath: corpus + "/models")?.compactMap { $0 as? String } ?? []
    return files.filter { $0.hasSuffix(".xcdatamodel") || $0.hasSuffix(".mom") }.sorted().map { corpus + "/models/" + $0 }
  }()

  /// The code of a real model. Nil for those in the format of Xcode before version 4, which can't be read.
  private static func code(of path: String) throws -> ModelCode? {
    let number = models.firstIndex(of: path) ?? 0
    do {
      let model = try ManagedObjectModel(contentsOf: path)
      return ModelCode(model, name: "Sample", access: number.isMultiple(of: 2) ? .public : .internal)
    } catch {
      if error.code == .oldFormat { return nil }
      throw error
    }
  }

  /// The first of every fortieth model that is compiled, and of every tenth that is formatted. All are with `HOLDFAST_TESTS=full`.
  private static let first = Int.random(in: 0..<TestTier.step(40))
  /// Whether the models are compiled in one file, as the build plugin writes them, or in two for each entity. Both with
  /// `HOLDFAST_TESTS=full`.
  private static let form = Int.random(in: 0...1)

  @Test(.enabled(if: !models.isEmpty, "HOLDFAST_CORPUS isn't set."), arguments: models)
  func classesOfRealModelsCompile(_ path: String) throws {
    let number = Self.models.firstIndex(of: path) ?? 0
    guard number % TestTier.step(40) == Self.first, let code = try Self.code(of: path) else { return }
    let forms = [[code.singleFile.name: code.singleFile.text], code.textsByName]
    for (form, texts) in forms.enumerated() where TestTier.isFull || form == Self.form {
      let messages = try SwiftTools.compile(files: texts, isolation: number.isMultiple(of: 3) ? "MainActor" : "nonisolated")
      #expect(!messages.contains("error:"), "\(path) in \(texts.count) files:\n\(messages.prefix(4000))")
    }
  }

  @Test(.enabled(if: !models.isEmpty, "HOLDFAST_CORPUS isn't set.")) func everyTemplateOfARealModelHasCode() throws {
    let codes = try Self.models.compactMap(Self.code)
    #expect(codes.count > 60)
    for code in codes { #expect(!code.notes.contains { $0.contains("has no code") }, "\(code.notes)") }
    let text = codes.map(\.singleFile.text).joined()
    for line in [
      "static func byHumanName(humanName: String?) -> FetchRequest<HumanMO> {", "static func byParent(parent: ParentMO?) ->",
      "static func byParentName(parentName: String?) -> FetchRequest<ChildMO> {", "$0.parent.parentName == parentName",
      "static func allHumans() -> FetchRequest<HumanMO> {", "$0.floatAttribute > 5",
    ] { #expect(text.contains(line), "\(line)") }
  }

  /// Longer lines have names or text that can't be broken, or are comments.
  @Test func codeWithoutLongLinesIsFormatted() throws {
    var codes = [ModelCode(try FullModel.model(), name: "Full"), ModelCode(try FleetModel.model(), name: "Fleet")]
    for number in stride(from: Self.first % TestTier.step(10), to: Self.models.count, by: TestTier.step(10)) {
      if let code = try Self.code(of: Self.models[number]) { codes.append(code) }
    }
    var texts: [String] = []
    for code in codes { texts += (code.files + [code.singleFile]).map(\.text) }
    texts.removeAll { text in text.split(separator: "\n").contains { $0.count > 100 } }
    #expect(texts.count > 15)
    for (text, formatted) in try zip(texts, SwiftTools.format(texts)) { #expect(formatted == text) }
  }
}

extension ModelCode {
  /// The texts of the files, by name.
  fileprivate var textsByName: [String: String] { Dictionary(uniqueKeysWithValues: files.map { ($0.name, $0.text) }) }
}
