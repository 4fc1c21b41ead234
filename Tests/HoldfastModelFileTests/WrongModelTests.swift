import Foundation
import HoldfastModelFile
import HoldfastStore
import Testing

/// Invalid models end in an error with the line and the name of the element.
@Suite struct WrongModelTests {
  private func failure(_ text: String, _ options: ModelFileOptions = ModelFileOptions()) -> ModelFileError? {
    do throws(ModelFileError) {
      _ = try ModelDocument(bytes: Array(text.utf8)).model(path: "p", options: options)
      return nil
    } catch {
      return error
    }
  }

  /// One attribute, in line 3.
  private func attribute(_ text: String) -> String { "<model>\n<entity name=\"Person\">\n<attribute \(text)/></entity></model>" }

  /// For programs that don't know Holdfast's error types.
  @Test func foundationShowsTheSentenceAndCocoasNumber() throws {
    let error: any Error = try #require(failure("<model>\n<entity/></model>"))
    let bridged = error as NSError
    #expect(bridged.domain == "NSCocoaErrorDomain" && bridged.code == 259)
    #expect(error.localizedDescription.hasPrefix("Could not read the model") && error.localizedDescription.contains("line 2"))
    #expect(!error.localizedDescription.contains("error 259") && bridged.localizedFailureReason != nil)
    let missing = ModelFileError(.notFound, path: "Zoo.xcdatamodeld", reason: "There is no such folder.") as any Error
    #expect((missing as NSError).code == 260)
    #expect(missing.localizedDescription == "Could not read the model at Zoo.xcdatamodeld: There is no such folder.")
  }

  @Test func theErrorNamesLineElementAndValue() {
    let found = failure(attribute("name=\"age\" attributeType=\"Integer 16\" minValueString=\"x\""))
    #expect(
      found?.description
        == "Could not read the model at p, line 3, attribute \"age\" of entity \"Person\": minValueString \"x\" is not a 16-bit integer. [invalidValue]"
    )
  }

  @Test(arguments: [
    "name='a' attributeType='Integer 8'", "name='a' attributeType='Integer 16' defaultValueString='70000'",
    "name='a' attributeType='Integer 16' defaultValueString='1.5'", "name='a' attributeType='Integer 32' defaultValueString='abc'",
    "name='a' attributeType='Integer 64' defaultValueString='9223372036854775808'",
    "name='a' attributeType='Double' defaultValueString='1,5'",
    "name='a' attributeType='Decimal' defaultValueString='1x'", "name='a' attributeType='Decimal' defaultValueString='--1'",
    "name='a' attributeType='Boolean' defaultValueString='maybe'", "name='a' attributeType='UUID' defaultValueString='1'",
    "name='a' attributeType='Date' defaultDateTimeInterval='today'", "name='a' attributeType='String' optional='perhaps'",
    "name='a' attributeType='String' minValueString='1.5'", "name='a' attributeType='String' maxValueString='99999999999999999999'",
    "name='a' attributeType='String' minValueString='-1'",
  ]) func aValueThatIsNoneIsNamed(_ text: String) {
    #expect(failure(attribute(text))?.code == .invalidValue)
    #expect(failure(attribute(text))?.line == 3)
    #expect(failure(attribute(text))?.element == "attribute \"a\" of entity \"Person\"")
  }

  @Test(arguments: [
    ("<attribute attributeType='String'/>", "attribute of entity \"E\""),
    ("<attribute name='' attributeType='String'/>", "attribute \"\" of entity \"E\""),
    ("<attribute name='c' attributeType='Composite'/>", "attribute \"c\" of entity \"E\""),
    ("<attribute name='d' attributeType='String' derived='YES'/>", "attribute \"d\" of entity \"E\""),
    ("<relationship name='r'/>", "relationship \"r\" of entity \"E\""),
    ("<fetchedProperty name='f'/>", "fetched property \"f\" of entity \"E\""),
    (
      "<fetchedProperty name='f'><fetchRequest name='q'/></fetchedProperty>",
      "fetch request \"q\" of fetched property \"f\" of entity \"E\""
    ),
    ("<fetchIndex/>", "index of entity \"E\""),
    ("<fetchIndex name='i'><fetchIndexElement/></fetchIndex>", "element of index \"i\" of entity \"E\""),
    ("<userInfo><entry value='v'/></userInfo>", "user info of entity \"E\""),
    (
      "<uniquenessConstraints><uniquenessConstraint><constraint/></uniquenessConstraint></uniquenessConstraints>",
      "constraint of entity \"E\""
    ),
  ]) func whatMustBeThereIsAskedFor(_ text: String, _ element: String) {
    let found = failure("<model>\n<entity name='E'>\n\(text)\n</entity></model>")
    #expect(found?.code == .missingAttribute, "\(String(describing: found))")
    #expect(found?.line == 3)
    #expect(found?.element == element)
  }

  @Test func keysThatAreEqualUpToNormalizationAreRefused() {
    let entries = "<entry key='caf\u{E9}' value='a'/>\n<entry key='cafe\u{301}' value='b'/>"
    let found = failure("<model>\n<entity name='E'><userInfo>\(entries)</userInfo></entity></model>")
    #expect(found?.code == .unsupported && found?.line == 3 && found?.element == "user info of entity \"E\"")
  }

  @Test(arguments: [
    "1e127", "1e128", "1e-200", "1e99999999999999999999", "1e-99999999999999999999", "\(String(repeating: "9", count: 500))", "1e", ".",
  ])
  func decimalsOutOfRangeDoNotTrap(_ text: String) {
    let found = failure(attribute("name='a' attributeType='Decimal' defaultValueString='\(text)' minValueString='\(text)'"))
    #expect(found == nil || found?.code == .invalidValue)
  }

  @Test func aToOneRelationshipOfNineIsNone() {
    let found = failure(
      "<model><entity name='E'>\n<relationship name='r' toMany='NO' maxCount='9' destinationEntity='E'/></entity></model>")
    #expect(found?.code == .invalidValue)
    #expect(found?.line == 2)
  }

  @Test(arguments: ["fetchLimit='-1'", "fetchBatchSize='x'", "resultType='3'", "includeSubentities='2'"])
  func aWrongSettingOfARequestIsNamed(_ text: String) {
    let found = failure("<model><entity name='E'/>\n<fetchRequest name='q' entity='E' \(text)/></model>")
    #expect(found?.code == .invalidValue)
    #expect(found?.line == 2)
    #expect(found?.element == "fetch request \"q\"")
  }

  /// A model's contents, and the line and the element of its first contradiction.
  private static let contradictions: [(text: String, line: Int, element: String)] = [
    ("<entity name='A' parentEntity='A'/>", 2, "A"), ("<entity name='A' parentEntity='B'/>\n<entity name='B' parentEntity='A'/>", 2, "A"),
    ("<entity name='A' parentEntity='Gone'/>", 2, "A"), ("<entity name='A'/>\n<entity name='A'/>", 2, "A"),
    ("<entity name='A'>\n<attribute name='x' attributeType='String'/>\n<relationship name='x' destinationEntity='A'/></entity>", 3, "A.x"),
    ("<entity name='A'>\n<relationship name='x' destinationEntity='B'/></entity>", 3, "A.x"),
    ("<entity name='A'>\n<relationship name='x' destinationEntity='A' inverseName='y'/></entity>", 3, "A.x"),
    ("<entity name='A'>\n<attribute name='x'/></entity>", 3, "A.x"), ("<entity name='a b'/>", 2, "a b"),
    ("<entity name='A'>\n<attribute name='x' attributeType='Composite' composite='C'/></entity>", 3, "A.x"),
    ("\n<composite name='C'><attribute name='x' attributeType='Composite' composite='C'/></composite>", 3, "composite C"),
    ("<configuration name='C'>\n<memberEntity name='B'/></configuration><entity name='A'/>", 2, "configuration C"),
    ("\n\n<fetchRequest name='q' entity='B'/>", 4, "fetch request q"),
    (
      "<entity name='A'>\n<relationship name='x' transient='YES' destinationEntity='A' inverseName='y'/><relationship name='y' destinationEntity='A' inverseName='x'/></entity>",
      3, "A.x"
    ),
    ("<entity name='A'>\n<fetchIndex name='i'><fetchIndexElement property='gone'/></fetchIndex></entity>", 2, "A.gone"),
    (
      "<entity name='A'>\n<uniquenessConstraints><uniquenessConstraint><constraint value='x'/></uniquenessConstraint></uniquenessConstraints></entity>",
      2, "A.x"
    ),
  ]

  @Test(arguments: contradictions.indices) func contradictionsHaveTheLineOfTheFirst(_ place: Int) throws {
    let (text, line, element) = Self.contradictions[place]
    let found = try #require(failure("<model>\n\(text)\n</model>"), "\(element)")
    #expect(found.code == .contradictory)
    #expect(found.element == element)
    // The reported line is where the tag ends. The same applies to entities.
    #expect(found.line == line, "\(found)")
    #expect(found.cause is ModelError)
  }

  // MARK: Few elements that expand to many

  private func chain(_ count: Int, isCircle: Bool = false) -> String {
    "<model>"
      + (0..<count).map { place in
        let parent = place > 0 ? " parentEntity='E\(place - 1)'" : isCircle ? " parentEntity='E\(count - 1)'" : ""
        return "<entity name='E\(place)'\(parent)/>"
      }.joined() + "</model>"
  }

  @Test func inheritanceIsBounded() {
    #expect(failure(chain(101)) == nil)
    #expect(failure(chain(102))?.code == .tooLarge)
    #expect(failure(chain(5_000, isCircle: true))?.code == .tooLarge)
    #expect(failure(chain(50, isCircle: true))?.code == .contradictory)
    #expect(failure(chain(5_001))?.code == .tooLarge)
  }

  @Test func propertiesAreBounded() {
    func family(_ attributes: Int, _ entities: Int) -> String {
      let own = (0..<attributes).map { "<attribute name='a\($0)' attributeType='String'/>" }.joined()
      return "<model><entity name='A'>\(own)</entity>" + (0..<entities).map { "<entity name='E\($0)' parentEntity='A'/>" }.joined()
        + "</model>"
    }
    #expect(failure(family(5_001, 0))?.code == .tooLarge)
    #expect(failure(family(2_000, 4_000))?.code == .tooLarge)
    var options = ModelFileOptions()
    options.maximumPropertyCount = 30
    #expect(failure(family(10, 2), options) == nil)
    #expect(failure(family(10, 3), options)?.code == .tooLarge)
    options.maximumEntityCount = 2
    #expect(failure(family(0, 2), options)?.code == .tooLarge)
  }

  @Test func compositesOfCompositesAreBounded() {
    func doubling(_ depth: Int) -> String {
      "<model><entity name='A'><attribute name='x' attributeType='Composite' composite='C0'/></entity>"
        + (0..<depth).map { level in
          let inner = "attributeType='Composite' composite='C\(level + 1)'"
          return "<composite name='C\(level)'><attribute name='a' \(inner)/><attribute name='b' \(inner)/></composite>"
        }.joined() + "<composite name='C\(depth)'><attribute name='v' attributeType='String'/></composite></model>"
    }
    #expect(failure(doubling(5)) == nil)
    #expect(failure(doubling(40))?.code == .tooLarge)
    #expect(failure(doubling(3_000))?.code == .tooLarge)
  }

  @Test func longListsDoNotHang() {
    let members = String(repeating: "<memberEntity name='A'/>", count: 90_000)
    #expect(failure("<model><entity name='A'/><configuration name='C'>\(members)</configuration></model>")?.code == .contradictory)
    let configurations = String(repeating: "<configuration name='C'/>", count: 90_000)
    #expect(failure("<model>\(configurations)</model>")?.code == .tooLarge)
    let attributes = (0..<200).map { "<attribute name='a\($0)' attributeType='String'/>" }.joined()
    let indexes = (0..<200).flatMap { place in
      (0..<place).map { "<compoundIndex><index value='a\($0)'/><index value='a\(place)'/></compoundIndex>" }
    }
    let lists = "<compoundIndexes>\(indexes.joined())</compoundIndexes>"
    #expect(failure("<model><entity name='A'>\(attributes)\(lists)</entity></model>") == nil)
    let entities = (1..<30_000).map { place in
      "<entity name='E\(place)' parentEntity='E\(place - 1)'><fetchIndex name='i'/></entity>"
    }
    #expect(failure("<model><entity name='E0'/>\(entities.joined())</model>")?.code == .tooLarge)
  }
}
